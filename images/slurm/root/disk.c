#include "disk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "owned.h"
#include "reason.h"

#define MKFS "/usr/sbin/mkfs.ext4"
enum { LOOP_MAJOR = 7, MISC_MAJOR = 10, LOOP_CONTROL_MINOR = 237, TRIES = 64, MOST_MIB = 1 << 30 };

static bool read_size(const char *text, unsigned long *mib) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value == 0 || value > MOST_MIB) return false;
    *mib = value;
    return true;
}

bool root_disks_parse(char *text, struct root_disks *disks) {
    memset(disks, 0, sizeof *disks);
    for (char *word; (word = strsep(&text, " \n"));) {
        char *value = strchr(word, '=');
        if (*word == 0) continue;
        if (value == NULL) return false;
        *value++ = 0;
        bool is_memory = strcmp(word, "tmp-in-memory") == 0, is_tmp = is_memory || strcmp(word, "tmp") == 0;
        if ((!is_tmp && strcmp(word, "scratch") != 0) || !read_size(value, is_tmp ? &disks->tmp_mib : &disks->scratch_mib)) return false;
        disks->tmp_in_memory |= is_memory;
    }
    return true;
}

int root_disks_read(const char *path, struct root_disks *disks) {
    char text[256];
    memset(disks, 0, sizeof *disks);
    owned_fd file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return errno == ENOENT ? 0 : root_fail("%s: %m", path);
    ssize_t length = read(file, text, sizeof text - 1);
    if (length < 0) return root_fail("%s: %m", path);
    text[length] = 0;
    return root_disks_parse(text, disks) ? 0 : root_fail("%s does not say what jobs have of the node's disk", path);
}

/* A device of the kernel's by its numbers: a pod's /dev has only those that were there when it began. */
static int open_device(const char *path, mode_t kind, dev_t numbers) {
    struct stat found;
    for (int tries = 0; tries < 2; tries++) {
        owned_fd device = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (device >= 0 && fstat(device, &found) == 0 && (found.st_mode & S_IFMT) == kind && found.st_rdev == numbers) return root_hand_over(&device);
        if (device >= 0) errno = ENODEV;
        if (errno != ENOENT || (mknod(path, kind | 0600, numbers) < 0 && errno != EEXIST)) return -1;
    }
    return -1;
}

/* A loop device over the file, opened, which frees itself when nothing has it any more. Its path goes into `path`. */
static int attach(int file, char path[32]) {
    owned_fd control = open_device("/dev/loop-control", S_IFCHR, makedev(MISC_MAJOR, LOOP_CONTROL_MINOR));
    if (control < 0) return root_fail("the node's kernel has no loop devices (/dev/loop-control: %m)");
    for (int tries = 0; tries < TRIES; tries++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0) return root_fail("the node's kernel gives no loop device: %m");
        snprintf(path, 32, "/dev/loop%d", number);
        owned_fd device = open_device(path, S_IFBLK, makedev(LOOP_MAJOR, (unsigned)number));
        if (device < 0) return root_fail("%s: %m", path);
        struct loop_config config = {.fd = (unsigned)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};
        if (ioctl(device, LOOP_CONFIGURE, &config) == 0) return root_hand_over(&device);
        if (errno != EBUSY) return root_fail("%s: %m", path); /* else another process was quicker */
    }
    return root_fail("no loop device could be had in %d tries", TRIES);
}

static int run_mkfs(const char *path) {
    /* No journal, as the disk never outlives its job. Tables of inodes are taken as empty, and never written as a whole. */
    char *const argv[] = {"mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard", (char *)path, NULL};
    char *const environment[] = {NULL};
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++) dup2(null, fd);
        execve(MKFS, argv, environment);
        _exit(127);
    }
    if (child < 0) return root_fail("fork: %m");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    return root_fail(MKFS " failed with %d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* All of the file's room is taken now: a disk that fills up later would break the job's file system. */
static int fill(int file, const char *path, unsigned long mib) {
    while (fallocate(file, 0, 0, (off_t)mib << 20) < 0)
        if (errno != EINTR) return root_fail("setting %lu MiB of the node's disk aside for the job: %m", mib);
    return run_mkfs(path);
}

static int mount_file(const char *path, unsigned long mib, const char *target) {
    char device[32];
    if (unlink(path) < 0 && errno != ENOENT) return root_fail("%s: %m", path);
    owned_fd file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return root_fail("%s: %m", path);
    owned_fd loop = fill(file, path, mib) < 0 ? -1 : attach(file, device);
    unlink(path);
    if (loop < 0) return -1;
    return mount(device, target, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "noinit_itable") == 0 ? 0 : root_fail("mounting %s: %m", device);
}

/* Jobs' own folders are open to all, below folders that only root enters. */
static int open_up(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || chmod(path, 01777) < 0) return root_fail("%s: %m", path);
    return 0;
}

static int put_tmp(const struct root_disks *disks, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tmp.disk", folder);
    if (disks->tmp_in_memory) {
        char options[64];
        snprintf(options, sizeof options, "mode=0700,size=%luM", disks->tmp_mib);
        if (mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0) return root_fail("a tmpfs for the job's /tmp: %m");
    } else if (mount_file(path, disks->tmp_mib, folder) < 0) {
        return root_fail("the job's /tmp has no disk");
    }
    return open_up(folder, "tmp") < 0 ? -1 : open_up(folder, "var_tmp");
}

static int put_scratch(const struct root_disks *disks, const char *folder) {
    char path[4096], image[4096 + 16];
    snprintf(path, sizeof path, "%s/scratch", folder);
    snprintf(image, sizeof image, "%s/scratch.disk", folder);
    if (mkdir(path, 0700) < 0 && errno != EEXIST) return root_fail("%s: %m", path);
    if (mount_file(image, disks->scratch_mib, path) < 0) return root_fail("the job's " ROOT_SCRATCH " has no disk");
    snprintf(image, sizeof image, "%s/lost+found", path);
    if (rmdir(image) < 0 && errno != ENOENT) return root_fail("%s: %m", image);
    return open_up(folder, "scratch");
}

/* Scratch first: its file has to be on the node's disk, not on that of /tmp, which covers the folder. */
int root_disks_put(const struct root_disks *disks, const char *folder) {
    char path[4096];
    owned_fd scratch = -1;
    if (disks->scratch_mib && put_scratch(disks, folder) < 0) return -1;
    snprintf(path, sizeof path, "%s/scratch", folder);
    if (disks->scratch_mib && disks->tmp_mib && (scratch = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) < 0) return root_fail("%s: %m", path);
    if (disks->tmp_mib == 0) return 0;
    if (put_tmp(disks, folder) < 0) return -1;
    if (scratch < 0) return 0;
    if (mkdir(path, 0700) < 0 && errno != EEXIST) return root_fail("%s: %m", path);
    return move_mount(scratch, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0 ? 0 : root_fail("%s: %m", path);
}
