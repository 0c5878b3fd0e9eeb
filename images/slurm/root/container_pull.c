#include "container_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_given.h"
#include "container_words.h"

/* Runs the program that pulls, whose last word on stdout is the image's id. */
static void pull(char id[80]) {
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) container_stop("pipe: %m");
    pid_t child = fork();
    if (child < 0) container_stop("fork: %m");
    if (child == 0) {
        dup2(ends[1], 1);
        close(CONTAINER_FD_READY);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char *const words[] = {"python3", "-IS", "-c",
                               "import sys; sys.path.insert(0, '/usr/lib/slipway'); from containers.pull import main; sys.exit(main(*sys.argv[1:]))",
                               (char *)given.base, (char *)given.record, (char *)given.image, (char *)(given.registry ? given.registry : ""),
                               (char *)given.node, (char *)(given.has_room ? "4" : ""), NULL};
        execvp("/usr/bin/python3", words);
        container_stop("containers need python3 in the job's root: %m");
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; used < 79 && ((got = read(ends[0], id + used, 79 - used)) > 0 || (got < 0 && errno == EINTR));) used += got > 0 ? (size_t)got : 0;
    id[used] = 0;
    id[strcspn(id, "\n")] = 0;
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && container_is_id(id)) return;
    if (WIFSIGNALED(status)) container_stop("pulling %s: python3 %s", given.image, container_why_killed(WTERMSIG(status)));
    container_end(); /* it has said why */
}

/* Keeps the image from being evicted while this process lives; from then on it is the file `image` of the job's container that does. False where it
   is not there, or not whole. */
static bool hold_image(const char *id) {
    char path[CONTAINER_PATH_MAX];
    snprintf(path, sizeof path, "%s/images/%s.lock", given.base, id);
    int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_SH) < 0) return false;
    snprintf(path, sizeof path, "%s/images/%s/rootfs", given.base, id);
    if (access(path, F_OK) < 0) {
        close(lock);
        return false;
    }
    snprintf(path, sizeof path, "%s/images/%s/used", given.base, id);
    int used = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (used >= 0) {
        futimens(used, NULL);
        close(used);
    }
    return true; /* the lock stays open */
}

/* The job's own word on the reference, from an earlier step: no program is started and no network is used. */
static bool read_record(char id[80]) {
    char text[CONTAINER_IMAGE_MAX + 100];
    FILE *file = fopen(given.record, "re");
    bool is_ours = file && fgets(text, sizeof text, file) && strlen(text) == strlen(given.image) + 1 && strncmp(text, given.image, strlen(given.image)) == 0;
    if (is_ours) is_ours = fgets(id, 80, file) != NULL;
    if (file) fclose(file);
    if (is_ours) id[strcspn(id, "\n")] = 0;
    return is_ours && container_is_id(id);
}

void container_find_image(int state, char id[80]) {
    if (container_read_text(state, "image", id, 80) && container_is_id(id) && hold_image(id)) return; /* a named container of an earlier step */
    if (!given.image) container_stop("no container of this job has that name on this node: give --container-image as well");
    if (read_record(id) && hold_image(id)) {
        container_write_text(state, "image", id);
        return;
    }
    for (int tries = 0; tries < 3; tries++) {
        pull(id);
        if (hold_image(id)) { /* else it was evicted at this moment */
            container_write_text(state, "image", id);
            return;
        }
    }
    container_stop("%s was evicted from this node's cache each time that it was pulled: the cache is too small", given.image);
}
