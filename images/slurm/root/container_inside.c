#include "container_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "container_given.h"
#include "container_words.h"

int container_open_inside(int root, const char *path, uint64_t flags) {
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* The folder that a path is in, made where it is missing; `*name` is the last part. */
static int open_above(int root, const char *path, const char **name) {
    char part[CONTAINER_PATH_MAX];
    const char *end = path;
    int folder = container_open_inside(root, "/", O_PATH | O_DIRECTORY);
    for (;;) {
        end += strspn(end, "/");
        size_t length = strcspn(end, "/");
        if (end[length + strspn(end + length, "/")] == 0) break;
        snprintf(part, sizeof part, "%.*s", (int)(end + length - path), path);
        int next = container_open_inside(root, part, O_PATH | O_DIRECTORY);
        if (next < 0 && errno == ENOENT && folder >= 0) {
            char last[256];
            snprintf(last, sizeof last, "%.*s", (int)length, end);
            if (mkdirat(folder, last, 0755) == 0 || errno == EEXIST) next = container_open_inside(root, part, O_PATH | O_DIRECTORY);
        }
        if (folder >= 0) close(folder);
        if (next < 0) return -1;
        folder = next;
        end += length;
    }
    *name = end;
    return folder;
}

int container_make_target(int root, const char *path, bool is_folder, bool replaces) {
    int target = container_open_inside(root, path, O_PATH | (is_folder ? O_DIRECTORY : 0));
    struct stat found;
    if (target >= 0 && (fstat(target, &found) < 0 || S_ISDIR(found.st_mode) != is_folder)) {
        close(target);
        target = -1;
        errno = is_folder ? ENOTDIR : EISDIR;
    }
    if (target >= 0) return target;
    const char *name;
    char last[256];
    int folder = open_above(root, path, &name);
    if (folder < 0) return -1;
    size_t length = strcspn(name, "/");
    if (length == 0 || length >= sizeof last) {
        errno = EINVAL;
        return -1;
    }
    snprintf(last, sizeof last, "%.*s", (int)length, name);
    bool exists = fstatat(folder, last, &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && replaces && !S_ISDIR(found.st_mode)) exists = unlinkat(folder, last, 0) < 0;
    int made = -1;
    if (is_folder && (mkdirat(folder, last, 0755) == 0 || errno == EEXIST)) made = openat(folder, last, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!is_folder) {
        int file = openat(folder, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (file >= 0) close(file);
        if (file >= 0 || errno == EEXIST) made = openat(folder, last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (made >= 0 && fstat(made, &found) == 0 && !S_ISREG(found.st_mode)) {
            close(made);
            made = -1;
            errno = EISDIR;
        }
    }
    close(folder);
    return made;
}

void container_replace_file(int root, const char *path, const char *text, size_t length) {
    const char *name;
    int folder = open_above(root, path, &name);
    if (folder < 0 || (unlinkat(folder, name, 0) < 0 && errno != ENOENT)) container_stop("%s of the container: %m", path);
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 || write(file, text, length) != (ssize_t)length) container_stop("%s of the container: %m", path);
    close(file);
    close(folder);
}
