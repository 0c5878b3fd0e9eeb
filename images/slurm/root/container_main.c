/* /usr/lib/slipway/container: makes a step's container on a node, and stays in it until the node's tasks have joined. Runs as the job's user, in the job's
   root and in the step's cgroup; it has no other rights than a program of the user's own.

   Arguments are key=value words. On descriptor 3 it writes one byte when tasks can join. What goes wrong is one line on stderr. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_fill.h"
#include "container_given.h"
#include "container_overlay.h"
#include "container_pull.h"
#include "container_save.h"

/* A file that tasks write their numbers into, as they join. */
static int open_desk(int state) {
    char name[160];
    snprintf(name, sizeof name, "tasks-%.100s", given.step);
    unlinkat(state, name, 0);
    int desk = mkfifoat(state, name, 0600) < 0 ? -1 : openat(state, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (desk < 0) container_stop("%s/%s: %m", given.state, name);
    return desk;
}

/* Until all of the node's tasks have come. It must not live as long as they do: Slurm waits a second where it finds a process after the tasks' end. */
static void stay(int desk) {
    long expected = given.tasks ? strtol(given.tasks, NULL, 10) : 1;
    struct pollfd wait = {.fd = desk, .events = POLLIN};
    for (char byte; expected > 0;) {
        if (read(desk, &byte, 1) == 1) expected--;
        else if (poll(&wait, 1, -1) < 0 && errno != EINTR) return;
    }
}

int main(int count, char **words) {
    char id[80] = "", member[64];
    struct stat space;
    umask(022);
    given.has_room = fstat(CONTAINER_FD_ROOM, &space) == 0 && S_ISSOCK(space.st_mode);
    container_read_arguments(count, words);
    int state = open(given.state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0) container_stop("%s: %m", given.state);
    if (given.save) return container_save(state);
    container_find_image(state, id);
    if (given.has_room) close(CONTAINER_FD_ROOM);
    container_make_spaces();
    int root = container_mount_image(id);
    container_fill(root);
    container_pivot(root);
    close(root);
    int desk = open_desk(state);
    char holder[160];
    snprintf(holder, sizeof holder, "holder-%.100s", given.step);
    if (fstatat(AT_FDCWD, "/proc/self/ns/mnt", &space, 0) < 0) container_stop("/proc: %m");
    snprintf(member, sizeof member, "%d %llu\n", (int)getpid(), (unsigned long long)space.st_ino);
    container_write_text(state, "members", member);
    container_write_text(state, holder, member);
    close(state);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    if (null > CONTAINER_FD_READY) close(null);
    prctl(PR_SET_NAME, "slipway-holder");
    if (write(CONTAINER_FD_READY, "1", 1) != 1) return 1;
    close(CONTAINER_FD_READY);
    stay(desk);
    return 0;
}
