#include "container_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    snprintf(place->desk, sizeof place->desk, "tasks-%s", place->step);
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

/* Of a process that is in the container, if it still is: its number may be another's by now. */
static bool open_spaces(pid_t member, unsigned long long number, struct container_spaces *into) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)member);
    owned_fd mounts = open(path, O_RDONLY | O_CLOEXEC);
    if (mounts < 0 || fstat(mounts, &found) < 0 || found.st_ino != number) return false;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)member);
    owned_fd users = open(path, O_RDONLY | O_CLOEXEC);
    if (users < 0) return false;
    into->users = root_hand_over(&users);
    into->mounts = root_hand_over(&mounts);
    return true;
}

/* Its file lists who has ever been in the container, since it was mounted. */
bool container_find_member(int state, struct container_spaces *into) {
    int file = openat(state, "members", O_RDONLY | O_NOFOLLOW | O_CLOEXEC), member;
    owned_file lines = file < 0 ? NULL : fdopen(file, "r");
    unsigned long long number;
    while (lines && fscanf(lines, "%d %llu", &member, &number) == 2)
        if (member > 0 && open_spaces(member, number, into)) return true;
    return false;
}

/* The last of the step's tasks waits for the end of what made the container, a millisecond: a task may be as short, and Slurm waits a second where a
   process outlives the tasks. */
static void see_off(int state, const struct container_place *place, bool is_last, int come) {
    char name[64], text[32] = "";
    snprintf(name, sizeof name, "holder-%s", place->step);
    owned_fd file = is_last ? openat(state, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    pid_t holder = file >= 0 && read(file, text, sizeof text - 1) > 0 ? (pid_t)atoi(text) : 0;
    owned_fd process = holder > 0 ? (int)syscall(SYS_pidfd_open, holder, 0) : -1;
    struct pollfd wait = {.fd = process, .events = POLLIN};
    if (come >= 0 && write(come, "1", 1) != 1) return;
    if (process >= 0) poll(&wait, 1, 1000);
}

void container_sign_in(spank_t spank, int state, const struct container_place *place) {
    char text[64];
    struct stat found;
    uint32_t count = 1;
    owned_fd members = openat(state, "members", O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (members >= 0 && stat("/proc/self/ns/mnt", &found) == 0) {
        int length = snprintf(text, sizeof text, "%d %llu\n", (int)getpid(), (unsigned long long)found.st_ino);
        if (write(members, text, (size_t)length) != length) slurm_debug("slipway: the container's list of tasks: %m");
    }
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &count) != ESPANK_SUCCESS || count == 0) count = 1;
    snprintf(text, sizeof text, "come-%s", place->step);
    owned_fd come = openat(state, text, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_last = come >= 0 && write(come, "1", 1) == 1 && fstat(come, &found) == 0 && found.st_size >= (off_t)count;
    owned_fd desk = openat(state, place->desk, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    see_off(state, place, is_last, desk);
}
