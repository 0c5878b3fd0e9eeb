#include "container_overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "container_given.h"
#include "container_words.h"

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

static int make_folder(const char *name) {
    char path[CONTAINER_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", given.state, name);
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

int container_mount_image(const char *id) {
    static char layers[4 * CONTAINER_PATH_MAX], merged[CONTAINER_PATH_MAX];
    if (make_folder("upper") < 0 || make_folder("work") < 0 || make_folder("merged") < 0) container_stop("%s: %m", given.state);
    snprintf(merged, sizeof merged, "%s/merged", given.state);
    snprintf(layers, sizeof layers, "lowerdir=%s/images/%s/rootfs,upperdir=%s/upper,workdir=%s/work,userxattr", given.base, id, given.state, given.state);
    if (mount("overlay", merged, "overlay", MS_NODEV | MS_NOSUID, layers) < 0)
        container_stop("mounting the image: %m (%s has to be on ext4, XFS or a tmpfs of Linux 5.11 or later)", given.base);
    int root = open(merged, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) container_stop("%s: %m", merged);
    return root;
}

void container_pivot(int root) {
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) container_stop("pivot_root: %m");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) container_stop("detaching the job's root: %m");
}
