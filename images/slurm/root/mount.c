#include "mount.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "owned.h"
#include "reason.h"

static int step_into(int folder, const char *name, bool is_folder) {
    for (int tries = 0; tries < 3; tries++) {
        int next = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_folder ? O_DIRECTORY : 0));
        if (next >= 0 || errno != ENOENT) return next;
        if (is_folder) {
            if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST) return -1;
        } else {
            owned_fd made = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
            if (made < 0 && errno != EEXIST) return -1;
        }
    }
    errno = ENOENT;
    return -1;
}

int root_target(int root, const char *path, bool is_file) {
    owned_fd folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    for (const char *part = path; folder >= 0 && *part;) {
        size_t length = strcspn(++part, "/");
        char name[256];
        if (length >= sizeof name) return root_fail("a part of %s is too long", path);
        snprintf(name, sizeof name, "%.*s", (int)length, part);
        part += length;
        int next = step_into(folder, name, *part || !is_file);
        root_close_now(&folder);
        folder = next;
    }
    struct stat found;
    if (folder < 0 && (errno == ENOTDIR || errno == ELOOP)) return root_fail("%s of the root goes over a link or a file: only folders can lead to a mount", path);
    if (folder < 0) return root_fail("%s of the root: %m", path);
    if (is_file && fstat(folder, &found) == 0 && !S_ISREG(found.st_mode))
        return root_fail("%s of the root is a link or a folder: make it an empty file", path);
    return root_hand_over(&folder);
}

int root_clone(const char *path, bool is_recursive) {
    return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (is_recursive ? AT_RECURSIVE : 0));
}

int root_tmpfs(const char *mode) {
    owned_fd context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) return -1;
    return fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int root_attach(int given, int target) {
    owned_fd tree = given;
    return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int root_restrict(int tree, unsigned long long attributes) {
    struct mount_attr wanted = {.attr_set = attributes};
    return mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted);
}

int root_seal(void) {
    struct mount_attr wanted = {.attr_set = MOUNT_ATTR_NOSUID};
    return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &wanted, sizeof wanted) == 0 ? 0 : root_fail("taking setuid programs their rights: %m");
}
