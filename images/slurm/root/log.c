#include "log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "mount.h"
#include "owned.h"
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
    owned_fd source = open_folder(from, name); /* no folder, most often a file that is met on a volume that tells no kinds */
    if (source < 0 || fstat(source, &found) < 0) return;
    bool is_new = mkdirat(to, name, 0700) == 0;
    owned_fd target = open_folder(to, name);
    if (target >= 0 && is_new) give(target, &found);
    if (target >= 0 && levels > 1 && found.st_uid == 0 && (found.st_mode & 0022) == 0) copy_folders(source, target, levels - 1, left);
    --*left;
}

/* A folder that cannot be made costs no job and no session. */
static void copy_folders(int from, int to, int levels, int *left) {
    owned_folder folder = root_read_folder(open_folder(from, "."));
    for (const struct dirent *entry; folder && *left > 0 && (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) copy_one(from, to, entry->d_name, levels, left);
    }
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
    owned_fd logs = open_folder(AT_FDCWD, LOGS);
    if (logs < 0) return -1;
    bool is_new = mkdirat(logs, version, 0700) == 0;
    *folder = open_folder(logs, version);
    if (*folder < 0) return -1;
    if (is_new) give(*folder, like);
    return open_tree(*folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* `var` was seen to be a folder, or is missing; root_target looks at it again, and at each part. */
static bool is_link(int root) {
    struct stat found;
    owned_fd var = open_folder(root, "var");
    return var >= 0 && fstatat(var, "log", &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
}

static int place(int target, const char *version, bool is_job) {
    struct stat like;
    owned_fd folder = -1;
    int left = FOLDERS;
    if (fstat(target, &like) < 0) return root_fail("/var/log of the root: %m");
    owned_fd tree = is_job ? -1 : pod_mount(version, &like, &folder);
    if (tree < 0) { /* a pod's full disk costs no session */
        root_close_now(&folder);
        tree = own_mount(&like, &folder);
    }
    if (tree < 0 || folder < 0 || root_restrict(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) return root_fail("/var/log of the node: %m");
    copy_folders(target, folder, LEVELS, &left);
    left = FOLDERS;
    if (!is_job) copy_folders(folder, target, LEVELS, &left);
    return root_attach(root_hand_over(&tree), target) == 0 ? 0 : root_fail("/var/log of the node: %m");
}

int root_log_place(int root, const char *version, bool is_job) {
    if (is_link(root)) return 0;
    owned_fd target = root_target(root, "/var/log", false);
    if (target < 0 && (errno == EROFS || errno == ENOSPC || errno == EDQUOT)) {
        root_reason_clear();
        return 0;
    }
    return target < 0 ? -1 : place(target, version, is_job);
}
