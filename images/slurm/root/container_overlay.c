#include "container_overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_given.h"
#include "container_words.h"

enum { BUSY_TRIES = 100 }; /* 5 s: an overlay goes a moment after its last process */

static void write_map(const char *file, unsigned inside, unsigned outside) {
    char text[64];
    int length = snprintf(text, sizeof text, "%u %u 1\n", inside, outside), map = open(file, O_WRONLY | O_CLOEXEC);
    if (map < 0 || write(map, text, (size_t)length) != length) container_stop("%s: %m", file);
    close(map);
}

void container_make_spaces(void) {
    uid_t user = getuid();
    gid_t group = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        container_stop("this node gives users no user namespaces, which containers need (%m): see user.max_user_namespaces and, on Ubuntu, "
                       "kernel.apparmor_restrict_unprivileged_userns");
    int deny = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    if (deny < 0 || write(deny, "deny", 4) != 4) container_stop("/proc/self/setgroups: %m");
    close(deny);
    write_map("/proc/self/uid_map", given.remap ? 0 : user, user);
    write_map("/proc/self/gid_map", given.remap ? 0 : group, group);
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) container_stop("making the mounts slaves: %m");
}

void container_join(void) {
    if (setns(CONTAINER_FD_USERS, CLONE_NEWUSER) < 0 || setns(CONTAINER_FD_MOUNTS, CLONE_NEWNS) < 0) container_stop("entering the container: %m");
    close(CONTAINER_FD_USERS);
    close(CONTAINER_FD_MOUNTS);
}

/* Whether it was there before. */
static bool make_folder(const char *name) {
    char path[CONTAINER_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", given.state, name);
    bool is_old = mkdir(path, 0755) < 0;
    if (is_old && errno != EEXIST) container_stop("%s: %m", path);
    return is_old;
}

/* With index=on the kernel refuses a second overlay. Users get no index all the same, and each mount a line in the kernel's log that says so: so only
   where there may be another one. */
static int mount_once(const char *merged, const char *layers) {
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    for (int tries = 0; mount("overlay", merged, "overlay", MS_NODEV | MS_NOSUID, layers) < 0; tries++) {
        if (errno != EBUSY || tries == BUSY_TRIES) return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int container_mount_image(const char *id) {
    static char layers[4 * CONTAINER_PATH_MAX], merged[CONTAINER_PATH_MAX];
    bool was_mounted = make_folder("upper");
    make_folder("work");
    make_folder("merged");
    snprintf(merged, sizeof merged, "%s/merged", given.state);
    snprintf(layers, sizeof layers, "lowerdir=%s/images/%s/rootfs,upperdir=%s/upper,workdir=%s/work,userxattr%s", given.base, id, given.state, given.state,
             was_mounted ? ",index=on" : "");
    if (mount_once(merged, layers) < 0) {
        if (errno == EBUSY)
            container_stop("the container %s runs, but its process slipway-holder was killed, by which steps join it: wait for the steps that use it, or "
                           "take another --container-name",
                           strchr(strrchr(given.state, '/'), '-') + 1);
        container_stop("mounting the image: %m (%s has to be on ext4, XFS or a tmpfs of Linux 5.11 or later)", given.base);
    }
    int root = open(merged, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) container_stop("%s: %m", merged);
    return root;
}

void container_pivot(int root) {
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) container_stop("pivot_root: %m");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) container_stop("detaching the job's root: %m");
}
