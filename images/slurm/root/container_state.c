/* The life of a container on a node. Its folder has the image's id (`image`), its changes (`upper`), a lock, and a file for each step's holder.

     none     no `image`. A step makes it: pulls, mounts, has a holder.
     runs     a holder lives. Steps join it, each with a holder of its own; so it runs until the last of them ends.
     rests    no holder lives, and no overlay has `upper`. A step mounts it again, with the files that it had.
     closed   no holder lives, but an overlay has `upper`: the last processes are about to go, or somebody killed the holder. A step waits for `rests`,
              and fails after a while.

   One task at a time moves it, under the lock. The lock is flock's, and its task and the helper that the task starts share it until the helper holds
   the container: so whichever of them is killed, the next one to get the lock finds one of the four. The prolog and the epilog of a job remove the
   folder, so a requeued job begins with `none`.

   What tells the states apart is the kernel's word. A holder has its file locked as long as it lives. It is a program of its own because tasks cannot
   be asked: until its exec a task is slurmstepd, which its user must not look into, and its program may be one that cannot be read. And an overlay
   is refused (index=on) whose `upper` another one has, so not even a fault here makes two containers of one. */
#include "container_state.h"

#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_flags.h"
#include "owned.h"
#include "reason.h"
#include "run.h"

void container_find_place(spank_t spank, struct container_place *place) {
    spank_get_item(spank, S_JOB_ID, &place->job);
    spank_get_item(spank, S_JOB_STEPID, &place->number);
    snprintf(place->step, sizeof place->step, "%u", place->number);
    snprintf(place->user_folder, sizeof place->user_folder, ROOT_CONTAINERS "/%u", (unsigned)getuid());
    snprintf(place->name, sizeof place->name, container_asked->name ? "name-%s" : "step-%s", container_asked->name ? container_asked->name : place->step);
    snprintf(place->path, sizeof place->path, "%s/jobs/%u/%s", place->user_folder, place->job, place->name);
    snprintf(place->holder, sizeof place->holder, CONTAINER_HOLDER "%s", place->step);
    snprintf(place->failed, sizeof place->failed, "failed-%s", place->step);
}

int container_open_state(const struct container_place *place) {
    char jobs[16];
    snprintf(jobs, sizeof jobs, "%u", place->job);
    const char *const parts[] = {"jobs", jobs, place->name};
    owned_fd folder = open(place->user_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return root_fail("%s: %m", place->user_folder);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (mkdirat(folder, parts[i], 0700) < 0 && errno != EEXIST) return root_fail("%s/%s: %m", place->user_folder, parts[i]);
        int next = openat(folder, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) return root_fail("%s/%s: %m", place->user_folder, parts[i]);
        root_close_now(&folder);
        folder = next;
    }
    return root_hand_over(&folder);
}

int container_lock_state(int state) {
    owned_fd lock = openat(state, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) < 0)
        if (errno != EINTR) return root_fail("locking the container: %m");
    return lock < 0 ? root_fail("the container's lock: %m") : root_hand_over(&lock);
}

/* Whether the holder whose file it is lives, and then its number. */
static pid_t read_holder(int file) {
    char text[16] = "";
    if (file < 0 || flock(file, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return 0;
    return pread(file, text, sizeof text - 1, 0) > 0 ? (pid_t)atoi(text) : 0;
}

static int open_space(pid_t holder, const char *kind) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)holder, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_file(int state, const char *name) { return openat(state, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); }

static bool open_holder(int file, struct container_spaces *into) {
    pid_t holder = read_holder(file);
    owned_fd users = holder > 0 ? open_space(holder, "user") : -1, mounts = holder > 0 ? open_space(holder, "mnt") : -1;
    if (users < 0 || mounts < 0 || read_holder(file) != holder) return false; /* it lived before and after, so they are its own */
    *into = (struct container_spaces){root_hand_over(&users), root_hand_over(&mounts)};
    return true;
}

bool container_find_own(int state, const struct container_place *place, struct container_spaces *into) {
    owned_fd file = open_file(state, place->holder);
    return open_holder(file, into);
}

bool container_find_any(int state, struct container_spaces *into) {
    owned_folder all = root_read_folder(openat(state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; all && (entry = readdir(all));) {
        if (strncmp(entry->d_name, CONTAINER_HOLDER, strlen(CONTAINER_HOLDER)) != 0) continue;
        owned_fd file = open_file(state, entry->d_name);
        if (open_holder(file, into)) return true;
        if (file >= 0 && flock(file, LOCK_SH | LOCK_NB) == 0) unlinkat(state, entry->d_name, 0); /* of a step that has ended */
    }
    return false;
}

void container_close_spaces(struct container_spaces *spaces) {
    root_close_now(&spaces->users);
    root_close_now(&spaces->mounts);
}
