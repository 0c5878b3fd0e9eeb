#include "place.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "disk.h"
#include "driver.h"
#include "log.h"
#include "mount.h"
#include "owned.h"
#include "reason.h"
#include "run.h"
#include "version.h"

/* Takes the tree over. */
static int put(int root, int given, const char *source, const char *path, bool is_file) {
    owned_fd tree = given;
    if (tree < 0) return root_fail("%s of the pod: %m", source);
    owned_fd target = root_target(root, path, is_file);
    if (target < 0) return -1;
    return root_attach(root_hand_over(&tree), target) == 0 ? 0 : root_fail("binding %s of the pod to %s: %m", source, path);
}

static int put_tmp(int root, const char *job_tmp) {
    char tmp[ROOT_PATH_MAX + 32] = "/tmp", var_tmp[ROOT_PATH_MAX + 32] = "/var/tmp";
    if (job_tmp) {
        snprintf(tmp, sizeof tmp, "%s/tmp", job_tmp);
        snprintf(var_tmp, sizeof var_tmp, "%s/var_tmp", job_tmp);
    }
    if (put(root, root_clone(tmp, true), tmp, "/tmp", false) < 0) return -1;
    if (put(root, root_clone(var_tmp, true), var_tmp, "/var/tmp", false) < 0) return -1;
    return job_tmp ? put(root, root_tmpfs("1777"), "a tmpfs", "/dev/shm", false) : 0;
}

/* In place of slurmd's spool a tmpfs, for the script of a batch job to come, with the configuration that SLURM_CONF names in jobs. */
static int put_spool(int root, const char *spool) {
    char settings[ROOT_PATH_MAX + 16];
    snprintf(settings, sizeof settings, "%s/conf-cache", spool);
    if (access(spool, F_OK) < 0) return 0;
    if (put(root, root_tmpfs("0755"), "a tmpfs", spool, false) < 0) return -1;
    owned_fd tree = root_clone(settings, false);
    if (tree < 0 && errno == ENOENT) return 0;
    if (tree >= 0 && root_restrict(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) return root_fail("%s: %m", settings);
    return put(root, root_hand_over(&tree), settings, settings, false);
}

/* The mount that a path of the pod lies on, and whether that is a folder; -1 with errno only. */
static int mount_of(const char *path, uint64_t *number, bool *is_folder) {
    struct statx found;
    if (statx(AT_FDCWD, path, 0, STATX_TYPE | STATX_MNT_ID, &found) < 0) return -1;
    *number = found.stx_mnt_id;
    *is_folder = S_ISDIR(found.stx_mode);
    return 0;
}

/* Volumes are as the pod has them. Single files, and folders of the pod's own image, can be written by nobody from inside: root of the pod runs
   programs from there. Of the image is what lies on the mount of `/`; the device does not tell, as some runtimes have images on the disk of the
   machine, where a volume may be, too. */
static int put_configured(int root, const struct root_conf *conf) {
    uint64_t image, number;
    bool is_folder;
    if (mount_of("/", &image, &is_folder) < 0) return root_fail("/ of the pod: %m");
    for (size_t i = 0; i < conf->count; i++) {
        const struct root_bind *bind = &conf->binds[i];
        int seen = mount_of(bind->source, &number, &is_folder); /* a copy of it is a mount of its own */
        if (seen < 0 && errno == ENOENT && bind->is_optional) continue;
        if (seen < 0) return root_fail("%s of the pod: %m", bind->source);
        if (is_folder == bind->is_file)
            return root_fail("%s of the pod is %s folder, line %d of the settings says otherwise", bind->source, bind->is_file ? "a" : "no", bind->line);
        owned_fd tree = root_clone(bind->source, !bind->is_file);
        if (tree >= 0 && root_restrict(tree, MOUNT_ATTR_NODEV | (bind->is_file || number == image ? MOUNT_ATTR_RDONLY : 0)) < 0)
            return root_fail("%s of the pod: %m", bind->source);
        if (put(root, root_hand_over(&tree), bind->source, bind->target, bind->is_file) < 0) return -1;
    }
    return 0;
}

/* True where the pod has a volume at /scratch or below it. */
static bool has_own_scratch(const struct root_conf *conf) {
    size_t length = sizeof ROOT_SCRATCH - 1;
    for (size_t i = 0; i < conf->count; i++) {
        const char *target = conf->binds[i].target;
        bool is_there = strncmp(target, ROOT_SCRATCH, length) == 0 && (target[length] == 0 || target[length] == '/');
        if (is_there && access(conf->binds[i].source, F_OK) == 0) return true;
    }
    return false;
}

/* The job's disk; /tmp where the node set has no such disk, and in a session: all pods share the version's folder, so /scratch is there in each. */
static int put_scratch(int root, const struct root_conf *conf, const char *job_tmp) {
    char path[ROOT_PATH_MAX + 32] = "/tmp";
    if (job_tmp) snprintf(path, sizeof path, "%s/scratch", job_tmp);
    if (job_tmp == NULL || access(path, F_OK) < 0) {
        if (has_own_scratch(conf)) return 0;
        if (job_tmp) snprintf(path, sizeof path, "%s/tmp", job_tmp);
    }
    return put(root, root_clone(path, true), path, ROOT_SCRATCH, false);
}

/* Gives the version's folder as a mount of its own, attached to the staging folder: pivot_root wants one. Files there may come from anyone
   who administers a version: devices among them are no devices, and in a job, whose pod is privileged, setuid programs get no rights. */
static int stage(const struct root_conf *conf, const char *version, bool is_job) {
    owned_fd shared = root_shared_open(conf->shared);
    owned_fd folder = shared < 0 ? -1 : root_version_open(shared, version);
    if (folder < 0) return -1;
    owned_fd tree = open_tree(folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0) return root_fail("version %s of the root: open_tree: %m", version);
    if (root_restrict(tree, MOUNT_ATTR_NODEV | (is_job ? MOUNT_ATTR_NOSUID : 0)) < 0 || move_mount(tree, "", AT_FDCWD, ROOT_STAGE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return root_fail("version %s of the root: mounting it: %m", version);
    return root_hand_over(&tree);
}

/* With /run/lock, where Debian's programs lock devices and the like, open to all as there: /var/lock leads to it. */
static int session_run(void) {
    owned_fd tree = root_tmpfs("0755");
    if (tree < 0 || mkdirat(tree, "lock", 0700) < 0 || fchmodat(tree, "lock", 01777, 0) < 0) return -1;
    return root_hand_over(&tree);
}

/* A session has a /run of its own, with what it needs of the pod's: munge's socket, Slurm's configuration, and what this pod's scripts tell.
   None of it can be written, nor can the names in /dev, since root of the pod reads and runs what is there. Not even visible are the host key
   and the users' control groups. */
static int put_session(int root) {
    static const char *const shown[] = {"/run/munge", "/run/slurm", ROOT_RUN};
    static const char *const hidden[] = {ROOT_RUN "/ssh", ROOT_RUN "/cgroup"};
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    owned_fd dev = root_clone("/dev", true);
    if (dev >= 0 && mount_setattr(dev, "", AT_EMPTY_PATH, &read_only, sizeof read_only) < 0) /* not what is mounted below: pts, shm */
        return root_fail("/dev of the pod: %m");
    if (put(root, root_hand_over(&dev), "/dev", "/dev", false) < 0 || put(root, session_run(), "a tmpfs", "/run", false) < 0) return -1;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        owned_fd tree = root_clone(shown[i], false);
        if (tree < 0 && errno == ENOENT) continue;
        if (tree >= 0 && root_restrict(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) return root_fail("%s of the pod: %m", shown[i]);
        if (put(root, root_hand_over(&tree), shown[i], shown[i], false) < 0) return -1;
    }
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (access(hidden[i], F_OK) == 0 && put(root, root_tmpfs("0755"), "a tmpfs", hidden[i], false) < 0) return -1;
    return 0;
}

/* The folders of users with their images: each can be entered by its user only. container.c makes them, in the pod, for jobs that begin later, too. */
static int put_containers(int root) {
    if ((mkdir("/var/spool/slipway", 0755) < 0 && errno != EEXIST) || (mkdir(ROOT_CONTAINERS, 0711) < 0 && errno != EEXIST)) return 0;
    owned_fd tree = root_clone(ROOT_CONTAINERS, true);
    if (tree < 0 && errno == ENOENT) return 0;
    if (tree >= 0 && root_restrict(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) return root_fail(ROOT_CONTAINERS ": %m");
    return put(root, root_hand_over(&tree), ROOT_CONTAINERS, ROOT_CONTAINERS, false);
}

/* Takes `run` over. */
static int put_job(int root, int given) {
    owned_fd run = given;
    if (put(root, root_clone("/dev", true), "/dev", "/dev", false) < 0) return -1;
    if (put(root, root_hand_over(&run), "/run", "/run", false) < 0) return -1;
    if (put_containers(root) < 0) return -1;
    return put(root, root_tmpfs("1777"), "a tmpfs", "/run/lock", false);
}

/* Takes `run` over. */
static int fill(int root, const struct root_conf *conf, const char *version, const char *job_tmp, int given) {
    owned_fd run = given;
    static const char *const always[] = {"/proc", "/sys"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (put(root, root_clone(always[i], true), always[i], always[i], false) < 0) return -1;
    if ((job_tmp ? put_job(root, root_hand_over(&run)) : put_session(root)) < 0) return -1;
    if (put_tmp(root, job_tmp) < 0 || root_log_place(root, version, job_tmp != NULL) < 0 || put_configured(root, conf) < 0) return -1;
    if (put_scratch(root, conf, job_tmp) < 0) return -1;
    return job_tmp ? put_spool(root, conf->spool) : 0;
}

/* After it, the old root lies over the new one at `.`; detaching it takes all of the pod's mounts away. */
static int pivot(int root) {
    if (fchdir(root) < 0) return root_fail("chdir to the new root: %m");
    if (syscall(SYS_pivot_root, ".", ".") < 0) return root_fail("pivot_root: %m");
    if (umount2(".", MNT_DETACH) < 0) return root_fail("detaching the pod's root: %m");
    if (chdir("/") < 0) return root_fail("chdir to /: %m");
    return 0;
}

int root_place(const struct root_conf *conf, const char *version, const char *job_tmp) {
    owned_fd root = -1, run = -1;
    mode_t mask = umask(022);
    int result = -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) root_fail("making the mounts slaves: %m");
    else if (umount2(ROOT_PINS, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT) root_fail("hiding " ROOT_PINS ": %m");
    else if (job_tmp && (run = root_clone("/run", true)) < 0) root_fail("/run: %m"); /* before the stage is mounted below it */
    else if ((root = stage(conf, version, job_tmp != NULL)) >= 0 && fill(root, conf, version, job_tmp, root_hand_over(&run)) == 0 && pivot(root) == 0) result = 0;
    root_close_now(&root);
    umask(mask);
    if (result < 0) return -1;
    if (access("/bin/sh", X_OK) < 0) return root_fail("version %s of the root has no /bin/sh, so it is no whole root file system", version);
    return root_driver_cache(version);
}
