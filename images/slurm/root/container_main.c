/* /usr/lib/slipway/container: makes a step's container on a node, or joins the one that runs, and holds it until the step's tasks there have ended. Runs
   as the job's user, in the job's root and in the step's cgroup; it has no other rights than a program of the user's own.

   Arguments are key=value words, descriptors those of container_ends.h. It writes one byte when tasks can join. What goes wrong is one line on stderr. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_fill.h"
#include "container_given.h"
#include "container_overlay.h"
#include "container_pull.h"
#include "container_save.h"
#include "container_slurm.h"

/* Which other tasks find it by. */
static void sign_in(int state) {
    char name[160], text[16];
    snprintf(name, sizeof name, CONTAINER_HOLDER "%.100s", given.step);
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    int file = openat(state, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) < 0 || ftruncate(file, 0) < 0 || write(file, text, (size_t)length) != length)
        container_stop("%s/%s: %m", given.state, name);
    /* the file stays open */
}

/* As slurmstepd ends it. Slurm sends signals for a step to all of its processes: this one is not meant. */
static void hold(void) {
    char byte;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    close(null);
    prctl(PR_SET_NAME, "slipway-holder");
    if (given.has_room) close(CONTAINER_FD_ROOM);
    close(CONTAINER_FD_LOCK);
    if (write(CONTAINER_FD_END, "1", 1) != 1) return; /* so slurmstepd knows whom it waits for */
    if (write(CONTAINER_FD_READY, "1", 1) != 1) return;
    close(CONTAINER_FD_READY);
    while (read(CONTAINER_FD_END, &byte, 1) > 0) continue;
}

static void enter_new(int state) {
    char id[80] = "";
    container_find_image(state, id);
    container_make_spaces();
    if (given.slurm) container_take_root();
    int root = container_mount_image(id);
    container_fill(root);
    container_pivot(root);
    close(root);
}

int main(int count, char **words) {
    struct stat space;
    umask(022);
    given.has_room = fstat(CONTAINER_FD_ROOM, &space) == 0 && S_ISSOCK(space.st_mode);
    for (int fd = CONTAINER_FD_READY; fd < CONTAINER_FD_COUNT; fd++)
        if (fd != CONTAINER_FD_ROOM) fcntl(fd, F_SETFD, FD_CLOEXEC);
    container_read_arguments(count, words);
    int state = open(given.state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0) container_stop("%s: %m", given.state);
    if (given.save) return container_save(state);
    if (given.joins) container_join();
    else enter_new(state);
    sign_in(state);
    close(state);
    hold();
    return 0;
}
