#include "tree.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "owned.h"
#include "reason.h"

static const struct dirent *next(DIR *folder) {
    const struct dirent *entry;
    while ((entry = readdir(folder)) && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) continue;
    return entry;
}

static DIR *open_folder(int parent, const char *name) {
    return root_read_folder(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static bool remove_one(int folder, const char *name) {
    return unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* Removes what is in a folder of `top`; what is not empty itself moves up into `top`, whose names are only ours. True where something has gone. */
static bool lift_all(int top, const char *name, unsigned long *number) {
    owned_folder folder = open_folder(top, name);
    const struct dirent *entry;
    bool has_moved = false;
    while (folder && (entry = next(folder))) {
        char lifted[32];
        snprintf(lifted, sizeof lifted, "lifted-%lu", (*number)++);
        has_moved |= remove_one(dirfd(folder), entry->d_name) || renameat(dirfd(folder), entry->d_name, top, lifted) == 0;
    }
    return has_moved;
}

static bool lift(int top, const char *name, unsigned long *number) {
    bool has_moved = lift_all(top, name, number);
    return unlinkat(top, name, AT_REMOVEDIR) == 0 || has_moved;
}

/* -1 with errno only: it cannot be opened. */
static int empty(int parent, const char *name) {
    owned_folder top = open_folder(parent, name);
    if (top == NULL) return -1;
    unsigned long number = 0;
    bool has_moved = true;
    /* A pass takes one level off each branch. The limit ends a fight with a process that goes on making folders. */
    for (long pass = 0; has_moved && pass < 1000000; pass++) {
        const struct dirent *entry;
        rewinddir(top);
        for (has_moved = false; (entry = next(top));)
            has_moved |= remove_one(dirfd(top), entry->d_name) || lift(dirfd(top), entry->d_name, &number);
    }
    return 0;
}

int root_tree_remove(int parent, const char *name) {
    if (empty(parent, name) < 0) return errno == ENOENT ? 0 : root_fail("cannot open %s to remove it: %m", name);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : root_fail("cannot remove %s: %m", name);
}
