#include "gone.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "owned.h"
#include "reason.h"

/* `USER.NUMBER` is a tree that was put there. `USER` is a folder with what was not empty in such trees: its names are numbers. */
typedef char gone_name[48];

struct turn {
    double until, visit_s; /* a visit is a part of the turn: no tree that its user goes on filling keeps the remover from the user's others */
    bool has_removed;
};

enum { VISITS = 8, STARTS = 1000 };

/* Where folders go that are not empty themselves: below the user's folder, or beside it where a full disk has no room for one. */
struct place {
    int folder;
    gone_name prefix;
};

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* No other process has the number, nor has had it. */
static unsigned long long new_number(void) {
    static unsigned long long last;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long number = (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
    return last = number > last ? number : last + 1;
}

static const struct dirent *next(DIR *folder) {
    const struct dirent *entry;
    while ((entry = readdir(folder)) && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) continue;
    return entry;
}

static DIR *open_folder(int parent, const char *name) {
    return root_read_folder(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static double end_of_visit(const struct turn *turn) {
    double end = now_s() + turn->visit_s;
    return end < turn->until ? end : turn->until;
}

static bool remove_one(int folder, const char *name, struct turn *turn) {
    bool is_removed = unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0;
    turn->has_removed |= is_removed;
    return is_removed || errno == ENOENT;
}

static void name_lifted(const struct place *place, gone_name lifted) {
    snprintf(lifted, sizeof(gone_name), "%.16s%llu", place->prefix, new_number());
}

/* Removes what is in an entry of root's folder `parent`; what is not empty itself moves to the place. `last` is the name of the last that moved, and
   empty where none did. */
static void strip(int parent, const char *name, const struct place *place, struct turn *turn, gone_name last) {
    gone_name lifted;
    const struct dirent *entry;
    *last = 0;
    if (remove_one(parent, name, turn)) return;
    owned_folder folder = open_folder(parent, name);
    double end = end_of_visit(turn);
    while (folder && now_s() < end && (entry = next(folder))) {
        if (remove_one(dirfd(folder), entry->d_name, turn)) continue;
        name_lifted(place, lifted);
        if (renameat(dirfd(folder), entry->d_name, place->folder, lifted) == 0) strcpy(last, lifted);
    }
    remove_one(parent, name, turn);
}

/* Goes on with what has moved last: a chain of folders is followed to its end in one visit. */
static void follow(int parent, const char *name, const struct place *place, struct turn *turn) {
    gone_name last, current;
    double end = end_of_visit(turn);
    strip(parent, name, place, turn, last);
    while (*last && now_s() < end) {
        strcpy(current, last);
        strip(place->folder, current, place, turn, last);
    }
}

/* The user of an entry; -1 for another name. */
static long long user_of(const char *name, bool *is_tree) {
    size_t length = strspn(name, "0123456789");
    if (length == 0 || length > 10 || (name[length] != 0 && name[length] != '.')) return -1;
    *is_tree = name[length] == '.';
    return atoll(name);
}

static bool is_tree_of(const char *name, uid_t user) {
    bool is_tree;
    return user_of(name, &is_tree) == (long long)user && is_tree;
}

/* All entries of the user's folder, or the user's trees beside it, once, from any of the first thousand on: in the same order each time, one could take
   each turn's whole time. */
static void visit_all(int parent, const uid_t *user, const struct place *place, struct turn *turn) {
    owned_folder folder = open_folder(parent, ".");
    const struct dirent *entry;
    unsigned long long count = 0, start, at;
    while (folder && count < STARTS && next(folder)) count++;
    if (count == 0) return;
    start = new_number() / 1000 % count;
    for (int half = 0; half < 2; half++) {
        rewinddir(folder);
        for (at = 0; now_s() < turn->until && (entry = next(folder)); at++) {
            bool is_due = half ? at < start : at >= start;
            if (is_due && (!user || is_tree_of(entry->d_name, *user))) follow(parent, entry->d_name, place, turn);
        }
    }
}

static void take_turn(int gone, uid_t user, struct turn *turn) {
    struct place place = {.folder = -1};
    gone_name own;
    snprintf(own, sizeof own, "%u", (unsigned)user);
    bool is_made = mkdirat(gone, own, 0700) == 0 || errno == EEXIST;
    owned_fd lifted = is_made ? openat(gone, own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    place.folder = lifted >= 0 ? lifted : gone;
    if (lifted < 0) snprintf(place.prefix, sizeof place.prefix, "%u.", (unsigned)user);
    for (bool has_removed = true; has_removed && now_s() < turn->until;) {
        struct turn part = {.until = turn->until, .visit_s = turn->visit_s};
        if (lifted >= 0) visit_all(lifted, NULL, &place, &part);
        visit_all(gone, &user, &place, &part);
        turn->has_removed |= has_removed = part.has_removed;
    }
    unlinkat(gone, own, AT_REMOVEDIR);
}

/* The next user, by number, who has something there; -1 after the last. */
static long long next_user(int gone, long long last) {
    owned_folder folder = open_folder(gone, ".");
    const struct dirent *entry;
    long long found = -1;
    bool is_tree;
    while (folder && (entry = next(folder))) {
        long long user = user_of(entry->d_name, &is_tree);
        if (user > last && user <= UINT_MAX && (found < 0 || user < found)) found = user;
    }
    return found;
}

/* In a folder of a project of quotas, only files of the same project can be put, and a file's owner may give it another. */
static void leave_project(int folder) {
    int flags;
    if (ioctl(folder, FS_IOC_GETFLAGS, &flags) < 0 || !(flags & FS_PROJINHERIT_FL)) return;
    flags &= ~FS_PROJINHERIT_FL;
    ioctl(folder, FS_IOC_SETFLAGS, &flags);
}

int root_gone_open(int base) {
    struct stat found;
    bool is_new = mkdirat(base, ROOT_GONE, 0700) == 0;
    if (!is_new && errno != EEXIST) return root_fail("the folder " ROOT_GONE ": %m");
    owned_fd gone = openat(base, ROOT_GONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (gone >= 0 && is_new) leave_project(gone);
    if (gone < 0 || fstat(gone, &found) < 0) return root_fail("the folder " ROOT_GONE ": %m");
    if (found.st_uid != geteuid() || (found.st_mode & 0077)) return root_fail("the folder " ROOT_GONE " is open to others than root");
    return root_hand_over(&gone);
}

int root_gone_put(int base, uid_t user, int parent, const char *name) {
    gone_name to;
    if (faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) return 0;
    owned_fd gone = root_gone_open(base);
    if (gone < 0) return -1;
    snprintf(to, sizeof to, "%u.%llu", (unsigned)user, new_number());
    return renameat(parent, name, gone, to) == 0 || errno == ENOENT ? 0 : root_fail("taking %s away: %m", name);
}

unsigned root_gone_count(int base, uid_t user, unsigned most) {
    owned_folder folder = open_folder(base, ROOT_GONE);
    const struct dirent *entry;
    unsigned count = 0;
    bool is_tree;
    while (folder && count < most && (entry = next(folder))) count += user_of(entry->d_name, &is_tree) == (long long)user && is_tree;
    return count;
}

bool root_gone_is_empty(int base) {
    owned_fd gone = openat(base, ROOT_GONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return gone < 0 || next_user(gone, -1) < 0;
}

enum root_gone root_gone_remove(int base, double seconds) {
    owned_fd gone = openat(base, ROOT_GONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool has_removed = false;
    if (gone < 0) return GONE_EMPTY;
    for (long long user = -1; (user = next_user(gone, user)) >= 0;) {
        struct turn turn = {.until = now_s() + seconds, .visit_s = seconds / VISITS};
        take_turn(gone, (uid_t)user, &turn);
        has_removed |= turn.has_removed;
    }
    if (next_user(gone, -1) < 0) return GONE_EMPTY;
    return has_removed ? GONE_LEFT : GONE_STUCK;
}
