#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reason.h"

static const struct dirent *next(DIR *folder) {
    const struct dirent *entry;
    while ((entry = readdir(folder)) && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) continue;
    return entry;
}

static DIR *open_folder(int parent, const char *name) {
    int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (folder == NULL && descriptor >= 0) close(descriptor);
    return folder;
}

static bool remove_one(int folder, const char *name) {
    return unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* Removes what is in a folder of `top`; what is not empty itself moves up into `top`, whose names are only ours. */
static bool lift(int top, const char *name, unsigned long *number) {
    DIR *folder = open_folder(top, name);
    const struct dirent *entry;
    bool has_moved = false;
    while (folder && (entry = next(folder))) {
        char lifted[32];
        snprintf(lifted, sizeof lifted, "lifted-%lu", (*number)++);
        has_moved |= remove_one(dirfd(folder), entry->d_name) || renameat(dirfd(folder), entry->d_name, top, lifted) == 0;
    }
    if (folder) closedir(folder);
    return unlinkat(top, name, AT_REMOVEDIR) == 0 || has_moved;
}

int root_tree_remove(int parent, const char *name) {
    DIR *top = open_folder(parent, name);
    if (top == NULL) return errno == ENOENT ? 0 : root_fail("cannot open %s to remove it: %m", name);
    unsigned long number = 0;
    bool has_moved = true;
    /* A pass takes one level off each branch. The limit ends a fight with a process that goes on making folders. */
    for (long pass = 0; has_moved && pass < 1000000; pass++) {
        const struct dirent *entry;
        rewinddir(top);
        for (has_moved = false; (entry = next(top));)
            has_moved |= remove_one(dirfd(top), entry->d_name) || lift(dirfd(top), entry->d_name, &number);
    }
    closedir(top);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : root_fail("cannot remove %s: %m", name);
}
