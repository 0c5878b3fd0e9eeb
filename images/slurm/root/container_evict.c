#include "container_evict.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "owned.h"
#include "reason.h"
#include "tree.h"

/* ENTRIES_MAX bounds what a user's folders may cost others: where there is more, all of that user's images count as used. */
enum { IMAGES_MAX = 4096, ID = 64, ENTRIES_MAX = 10000 };

/* Beside the users' folders: a file for each step that may pull, with what it has reserved, locked while the step runs. */
#define ROOM "room"

struct cached {
    char user[16], id[ID + 1];
    unsigned long mib;
    time_t used;
    bool is_idle, is_out; /* no step has it; its tree has another name, and is to be removed */
};

static int open_folder(int parent, const char *name) { return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

static bool is_user(const char *text) { return *text && strlen(text) < 16 && strspn(text, "0123456789") == strlen(text); }

static bool is_id(const char *text) { return strlen(text) == ID && strspn(text, "0123456789abcdef") == ID; }

int container_forget_job(int base, uid_t user, uint32_t job) {
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)user);
    owned_fd own = open_folder(base, name);
    owned_fd jobs = own < 0 ? -1 : open_folder(own, "jobs");
    if (jobs < 0) return 0; /* the user has had no containers here */
    snprintf(name, sizeof name, "%u", job);
    return root_tree_remove(jobs, name);
}

static void sweep_user(int base, const char *user, int pins) {
    owned_fd own = open_folder(base, user);
    owned_fd jobs = own < 0 ? -1 : open_folder(own, "jobs");
    owned_folder all = jobs < 0 ? NULL : root_read_folder(openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; all && (entry = readdir(all));)
        if (is_user(entry->d_name) && faccessat(pins, entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) root_tree_remove(jobs, entry->d_name);
}

void container_sweep(int base, const char *path) {
    owned_fd pins = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    owned_folder users = pins < 0 ? NULL : root_read_folder(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; users && (entry = readdir(users));)
        if (is_user(entry->d_name)) sweep_user(base, entry->d_name, pins);
}

/* A number that is too large is as large as may be. */
static unsigned long read_number(int file) {
    char text[24] = "";
    if (pread(file, text, sizeof text - 1, 0) <= 0) return 0;
    unsigned long mib = strtoul(text, NULL, 10);
    return mib < CONTAINER_MIB_MAX ? mib : CONTAINER_MIB_MAX;
}

/* The file is its user's: no reading of it waits. */
static unsigned long read_size(int image) {
    struct stat found;
    owned_fd file = openat(image, "size", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode) ? read_number(file) : 0;
}

static size_t list_user(int base, const char *user, struct cached *into, size_t room) {
    owned_fd own = open_folder(base, user);
    owned_fd images = own < 0 ? -1 : open_folder(own, "images");
    owned_folder folder = images < 0 ? NULL : root_read_folder(openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    size_t count = 0;
    for (const struct dirent *entry; folder && count < room && (entry = readdir(folder));) {
        struct stat found;
        if (!is_id(entry->d_name)) continue;
        owned_fd image = open_folder(images, entry->d_name);
        if (image < 0) continue;
        struct cached *one = &into[count++];
        snprintf(one->user, sizeof one->user, "%.15s", user);
        snprintf(one->id, sizeof one->id, "%.64s", entry->d_name);
        one->mib = read_size(image);
        one->used = fstatat(image, "used", &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_mtime : 0;
        time_t now = time(NULL);
        if (one->used > now) one->used = now;
    }
    return count;
}

static int by_use(const void *left, const void *right) {
    time_t first = ((const struct cached *)left)->used, second = ((const struct cached *)right)->used;
    return first < second ? -1 : first > second;
}

/* Calls `found` with the image of each container of the user's jobs that have not ended on this node. False where that is not to be told. */
static bool each_used(int own, void (*found)(void *, const char *), void *about) {
    owned_fd jobs = open_folder(own, "jobs");
    owned_folder all = jobs < 0 ? NULL : root_read_folder(openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int left = ENTRIES_MAX;
    for (const struct dirent *entry; all && (entry = readdir(all)) && left-- > 0;) {
        owned_fd job = is_user(entry->d_name) ? open_folder(jobs, entry->d_name) : -1;
        owned_folder containers = job < 0 ? NULL : root_read_folder(openat(job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (const struct dirent *one; containers && (one = readdir(containers)) && left-- > 0;) {
            char text[ID + 2] = "";
            owned_fd container = one->d_name[0] == '.' ? -1 : open_folder(job, one->d_name);
            owned_fd image = container < 0 ? -1 : openat(container, "image", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (image >= 0 && read(image, text, ID) == ID) found(about, text);
        }
    }
    return left > 0;
}

struct listed {
    struct cached *all;
    size_t count;
};

static void mark_used(void *about, const char *id) {
    struct listed *listed = about;
    for (size_t i = 0; i < listed->count; i++)
        if (strcmp(listed->all[i].id, id) == 0) listed->all[i].is_idle = false;
}

/* The lock is held while it is pulled, and while a job begins to use it. */
static int lock_image(int images, const char *id) {
    char name[ID + 8];
    snprintf(name, sizeof name, "%s.lock", id);
    owned_fd lock = openat(images, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock < 0 && errno == ENOENT) return open("/dev/null", O_RDONLY | O_CLOEXEC); /* nobody has begun to use it since it was made */
    return lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 ? -1 : root_hand_over(&lock);
}

static void mark_idle(int base, const char *user, struct listed listed) {
    owned_fd own = open_folder(base, user);
    owned_fd images = own < 0 ? -1 : open_folder(own, "images");
    for (size_t i = 0; i < listed.count; i++) {
        owned_fd lock = images < 0 ? -1 : lock_image(images, listed.all[i].id);
        listed.all[i].is_idle = lock >= 0;
    }
    if (own >= 0 && each_used(own, mark_used, &listed)) return;
    for (size_t i = 0; i < listed.count; i++) listed.all[i].is_idle = false;
}

/* Takes an image out of the cache: only its name changes, so that nobody waits for the removal of its tree. The name is that of what is not whole,
   should this be interrupted. */
static bool take_out(int base, struct cached *one) {
    char name[ID + 8];
    owned_fd own = open_folder(base, one->user);
    owned_fd images = own < 0 ? -1 : open_folder(own, "images");
    owned_fd lock = images < 0 ? -1 : lock_image(images, one->id);
    if (lock < 0) return false;
    struct cached now = *one;
    now.is_idle = true;
    if (!each_used(own, mark_used, &(struct listed){&now, 1}) || !now.is_idle) return false;
    snprintf(name, sizeof name, "%s.part", one->id);
    one->is_out = true; /* also where one is in the way that was not removed to its end */
    return renameat(images, one->id, images, name) == 0;
}

struct cache {
    struct cached *all; /* those first that were used longest ago */
    size_t count;
    unsigned long total, reserved; /* MiB: of all images, and of pulls that are under way */
};

static void free_cache(const struct cache *cache) { free(cache->all); }

#define owned_cache __attribute__((cleanup(free_cache))) struct cache

/* Of steps that run: the file of one that has ended has no lock any more. `mine` is left out. */
static unsigned long sum_reserved(int room, int mine) {
    struct stat own = {0}, found;
    unsigned long sum = 0;
    if (mine >= 0 && fstat(mine, &own) < 0) return 0;
    owned_folder all = root_read_folder(openat(room, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; all && (entry = readdir(all));) {
        owned_fd file = is_user(entry->d_name) ? openat(room, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (file < 0 || fstat(file, &found) < 0 || (mine >= 0 && found.st_ino == own.st_ino)) continue;
        if (flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(room, entry->d_name, 0);
        else sum += read_number(file);
    }
    return sum;
}

static int read_cache(int base, int room, int mine, struct cache *cache) {
    if ((cache->all = calloc(IMAGES_MAX, sizeof *cache->all)) == NULL) return root_fail("out of memory");
    owned_folder users = root_read_folder(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; users && cache->count < IMAGES_MAX && (entry = readdir(users));)
        if (is_user(entry->d_name)) {
            struct listed listed = {cache->all + cache->count, list_user(base, entry->d_name, cache->all + cache->count, IMAGES_MAX - cache->count)};
            mark_idle(base, entry->d_name, listed);
            cache->count += listed.count;
        }
    for (size_t i = 0; i < cache->count; i++) cache->total += cache->all[i].mib;
    qsort(cache->all, cache->count, sizeof *cache->all, by_use);
    cache->reserved = sum_reserved(room, mine);
    return 0;
}

/* The folder of reservations, and in `lock` what only one at a time has; `waits` off: -1 without a reason where another has it. */
static int open_room(int base, int *lock, bool waits) {
    if (mkdirat(base, ROOM, 0700) < 0 && errno != EEXIST) return root_fail("the folder " ROOM ": %m");
    owned_fd room = open_folder(base, ROOM);
    struct stat found;
    if (room < 0 || fstat(room, &found) < 0) return root_fail("the folder " ROOM ": %m");
    if (found.st_uid != geteuid()) return root_fail("the folder " ROOM " belongs to another user");
    *lock = openat(room, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (*lock >= 0 && flock(*lock, LOCK_EX | (waits ? 0 : LOCK_NB)) < 0) {
        if (!waits && errno == EWOULDBLOCK) {
            root_close_now(lock);
            return root_hand_over(&room);
        }
        if (errno != EINTR) root_close_now(lock);
    }
    return *lock < 0 ? root_fail("locking the cache of images: %m") : root_hand_over(&room);
}

static unsigned long free_mib(int folder) {
    struct statvfs disk;
    return fstatvfs(folder, &disk) < 0 ? 0 : (unsigned long)(disk.f_bavail * disk.f_frsize >> 20);
}

/* MiB that are missing for an eighth of the disk to be free. */
static unsigned long missing_mib(int base) {
    struct statvfs disk;
    if (fstatvfs(base, &disk) < 0 || disk.f_bavail >= disk.f_blocks / 8) return 0;
    return (unsigned long)((disk.f_blocks / 8 - disk.f_bavail) * disk.f_frsize >> 20) + 1;
}

/* Takes idle images out, those first that were used longest ago, until the cache has no more than `most` MiB and `freed` MiB of disk, by their users'
   word, will be free. */
static void take_out_until(int base, struct cache *cache, unsigned long most, unsigned long freed) {
    unsigned long before = cache->total;
    for (size_t i = 0; i < cache->count && (cache->total > most || before - cache->total < freed); i++)
        if (cache->all[i].is_idle && take_out(base, &cache->all[i])) cache->total -= cache->all[i].mib;
}

/* Without the lock: a tree of a user's may take long. */
static void remove_taken_out(int base, const struct cache *cache) {
    for (size_t i = 0; i < cache->count; i++) {
        char name[ID + 8];
        owned_fd own = cache->all[i].is_out ? open_folder(base, cache->all[i].user) : -1;
        owned_fd images = own < 0 ? -1 : open_folder(own, "images");
        owned_fd lock = images < 0 ? -1 : lock_image(images, cache->all[i].id);
        snprintf(name, sizeof name, "%s.part", cache->all[i].id);
        if (lock >= 0) root_tree_remove(images, name);
    }
}

int container_evict(int base, unsigned long bound_mib) {
    owned_fd lock = -1, room = open_room(base, &lock, false);
    owned_cache cache = {0};
    if (room < 0) return -1;
    if (lock < 0) return 0; /* whoever has it is making room */
    if (read_cache(base, room, -1, &cache) < 0) return -1;
    unsigned long most = !bound_mib ? ULONG_MAX : bound_mib > cache.reserved ? bound_mib - cache.reserved : 0;
    take_out_until(base, &cache, most, missing_mib(base));
    root_close_now(&lock);
    remove_taken_out(base, &cache);
    return 0;
}

int container_open_reservation(int base, unsigned number) {
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    owned_fd lock = -1, room = open_room(base, &lock, true); /* who sums up takes one without a lock for a left one */
    if (room < 0) return -1;
    if (unlinkat(room, name, 0) < 0 && errno != ENOENT) return root_fail("a reservation of room for an image: %m");
    owned_fd mine = openat(room, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (mine < 0 || flock(mine, LOCK_SH | LOCK_NB) < 0) return root_fail("a reservation of room for an image: %m");
    return root_hand_over(&mine);
}

static int write_reservation(int mine, unsigned long mib) {
    char text[24];
    int length = snprintf(text, sizeof text, "%lu\n", mib);
    return ftruncate(mine, 0) == 0 && pwrite(mine, text, (size_t)length, 0) == length ? 0 : root_fail("a reservation of room for an image: %m");
}

int container_reserve(int base, uid_t user, int mine, unsigned long bound_mib, unsigned long needed, struct container_room *answer) {
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)user);
    *answer = (struct container_room){.verdict = CONTAINER_ROOM};
    if (needed == 0) return write_reservation(mine, 0);
    owned_fd lock = -1, room = open_room(base, &lock, true);
    owned_fd own = room < 0 ? -1 : open_folder(base, name);
    owned_cache cache = {0};
    if (own < 0 || read_cache(base, room, mine, &cache) < 0) return -1;
    unsigned long idle = 0, free = free_mib(own);
    for (size_t i = 0; i < cache.count; i++) idle += cache.all[i].is_idle ? cache.all[i].mib : 0;
    unsigned long left = cache.total - idle + cache.reserved;
    if (bound_mib && left + needed > bound_mib) { /* nothing is removed in vain */
        *answer = (struct container_room){CONTAINER_CACHE_FULL, left, bound_mib};
        return 0;
    }
    if (free + idle >= needed) take_out_until(base, &cache, bound_mib ? bound_mib - needed - cache.reserved : ULONG_MAX, free < needed ? needed - free : 0);
    bool fits = !bound_mib || cache.total + cache.reserved + needed <= bound_mib;
    if (fits && write_reservation(mine, needed) < 0) return -1;
    root_close_now(&lock);
    remove_taken_out(base, &cache);
    if (!fits) *answer = (struct container_room){CONTAINER_CACHE_FULL, cache.total + cache.reserved, bound_mib};
    else if (free_mib(own) < needed) *answer = (struct container_room){CONTAINER_DISK_FULL, free_mib(own), 0};
    return answer->verdict == CONTAINER_DISK_FULL ? write_reservation(mine, 0) : 0;
}
