#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount.h"
#include "reason.h"
#include "run.h"

#define LOGS ROOT_RUN "/log"
enum { LEVELS = 8, FOLDERS = 256 }; /* a job must not wait for what somebody heaped up there */

static int open_folder(int parent, const char *name) { return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

static void give(int folder, const struct stat *like) {
    if (fchown(folder, like->st_uid, like->st_gid) == 0) fchmod(folder, like->st_mode & 07777);
}

static void copy_folders(int from, int to, int levels, int *left);

/* What is there stays as it is. Where others than root may make folders, nothing below is taken along: it would have no end. */
static void copy_one(int from, int to, const char *name, int levels, int *left) {
    struct stat found;
    int source = open_folder(from, name); /* no folder, most often a file that is met on a volume that tells no kinds */
    if (source < 0) return;
    if (fstat(source, &found) == 0) {
        bool is_new = mkdirat(to, name, 0700) == 0;
        int target = open_folder(to, name);
        if (target >= 0 && is_new) give(target, &found);
        if (target >= 0 && levels > 1 && found.st_uid == 0 && (found.st_mode & 0022) == 0) copy_folders(source, target, levels - 1, left);
        if (target >= 0) close(target);
        --*left;
    }
    close(source);
}

/* A folder that cannot be made costs no job and no session. */
static void copy_folders(int from, int to, int levels, int *left) {
    int again = open_folder(from, ".");
    DIR *folder = again < 0 ? NULL : fdopendir(again);
    for (const struct dirent *entry; folder && *left > 0 && (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) copy_one(from, to, entry->d_name, levels, left);
    }
    if (folder) closedir(folder);
    else if (again >= 0) close(again);
}

static int own_mount(const struct stat *like, int *folder) {
    int tree = root_tmpfs("0755");
    *folder = -1;
    if (tree >= 0 && (*folder = open_folder(tree, ".")) >= 0) give(*folder, like);
    return tree;
}

/* The pod's folder for a version, opened, and a mount of it. */
static int pod_mount(const char *version, const struct stat *like, int *folder) {
    if (mkdir(LOGS, 0700) < 0 && errno != EEXIST) return -1;
    int logs = open_folder(AT_FDCWD, LOGS);
    if (logs < 0) return -1;
    bool is_new = mkdirat(logs, version, 0700) == 0;
    *folder = open_folder(logs, version);
    close(logs);
    if (*folder < 0) return -1;
    if (is_new) give(*folder, like);
    return open_tree(*folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* `var` was seen to be a folder, or is missing; root_target looks at it again, and at each part. */
static bool is_link(int root) {
    struct stat found;
    int var = open_folder(root, "var");
    bool result = var >= 0 && fstatat(var, "log", &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
    if (var >= 0) close(var);
    return result;
}

static int place(int target, const char *version, bool is_job) {
    struct stat like;
    int folder = -1, left = FOLDERS;
    if (fstat(target, &like) < 0) return root_fail("/var/log of the root: %m");
    int tree = is_job ? -1 : pod_mount(version, &like, &folder);
    if (tree < 0 && folder >= 0) close(folder);
    if (tree < 0) tree = own_mount(&like, &folder); /* a pod's full disk costs no session */
    if (tree < 0 || folder < 0 || root_restrict(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) {
        root_fail("/var/log of the node: %m");
        if (folder >= 0) close(folder);
        if (tree >= 0) close(tree);
        return -1;
    }
    copy_folders(target, folder, LEVELS, &left);
    left = FOLDERS;
    if (!is_job) copy_folders(folder, target, LEVELS, &left);
    close(folder);
    return root_attach(tree, target) == 0 ? 0 : root_fail("/var/log of the node: %m");
}

int root_log_place(int root, const char *version, bool is_job) {
    if (is_link(root)) return 0;
    int target = root_target(root, "/var/log", false);
    if (target < 0 && (errno == EROFS || errno == ENOSPC || errno == EDQUOT)) {
        root_reason_clear();
        return 0;
    }
    if (target < 0) return -1;
    int result = place(target, version, is_job);
    close(target);
    return result;
}
