#include "container_evict.h"

#include <fcntl.h>
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

enum { IMAGES_MAX = 4096, ID = 64 };

/* Beside the users' folders: a file for each step that may pull, with what it has reserved, locked while the step runs. */
#define ROOM "room"

struct cached {
    char user[16], id[ID + 1];
    unsigned long mib;
    time_t used;
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

static bool is_full(int base) {
    struct statvfs disk;
    return fstatvfs(base, &disk) == 0 && disk.f_bavail < disk.f_blocks / 8;
}

/* Whether a job of the user's that has not ended on this node has a container of the image. */
static bool is_used(int own, const char *id) {
    owned_fd jobs = open_folder(own, "jobs");
    owned_folder all = jobs < 0 ? NULL : root_read_folder(openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; all && (entry = readdir(all));) {
        owned_fd job = is_user(entry->d_name) ? open_folder(jobs, entry->d_name) : -1;
        owned_folder containers = job < 0 ? NULL : root_read_folder(openat(job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (const struct dirent *one; containers && (one = readdir(containers));) {
            char text[ID + 2] = "";
            owned_fd container = one->d_name[0] == '.' ? -1 : open_folder(job, one->d_name);
            owned_fd image = container < 0 ? -1 : openat(container, "image", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (image >= 0 && read(image, text, ID) == ID && strcmp(text, id) == 0) return true;
        }
    }
    return false;
}

/* The lock is held while it is pulled, and while a job begins to use it. */
static bool evict(int base, const struct cached *one) {
    char name[ID + 8];
    owned_fd own = open_folder(base, one->user);
    owned_fd images = own < 0 ? -1 : open_folder(own, "images");
    if (images < 0) return false;
    snprintf(name, sizeof name, "%s.lock", one->id);
    owned_fd lock = openat(images, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0) return false;
    if (is_used(own, one->id)) return false;
    snprintf(name, sizeof name, "%s.part", one->id); /* the name of what is not whole, should this be interrupted */
    root_tree_remove(images, name);
    return renameat(images, one->id, images, name) == 0 && root_tree_remove(images, name) == 0;
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
        if (is_user(entry->d_name)) cache->count += list_user(base, entry->d_name, cache->all + cache->count, IMAGES_MAX - cache->count);
    for (size_t i = 0; i < cache->count; i++) cache->total += cache->all[i].mib;
    qsort(cache->all, cache->count, sizeof *cache->all, by_use);
    cache->reserved = sum_reserved(room, mine);
    return 0;
}

/* The folder of reservations, and in `lock` what only one at a time has. */
static int open_room(int base, int *lock) {
    if (mkdirat(base, ROOM, 0700) < 0 && errno != EEXIST) return root_fail("the folder " ROOM ": %m");
    owned_fd room = open_folder(base, ROOM);
    struct stat found;
    if (room < 0 || fstat(room, &found) < 0) return root_fail("the folder " ROOM ": %m");
    if (found.st_uid != geteuid()) return root_fail("the folder " ROOM " belongs to another user");
    if (lock == NULL) return root_hand_over(&room);
    *lock = openat(room, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (*lock >= 0 && flock(*lock, LOCK_EX) < 0)
        if (errno != EINTR) root_close_now(lock);
    return *lock < 0 ? root_fail("locking the cache of images: %m") : root_hand_over(&room);
}

int container_evict(int base, unsigned long bound_mib) {
    owned_fd lock = -1, room = open_room(base, &lock);
    owned_cache cache = {0};
    if (room < 0 || read_cache(base, room, -1, &cache) < 0) return -1;
    for (size_t i = 0; i < cache.count && ((bound_mib && cache.total + cache.reserved > bound_mib) || is_full(base)); i++)
        if (evict(base, &cache.all[i])) cache.total -= cache.all[i].mib;
    return 0;
}

int container_open_reservation(int base, unsigned number) {
    char name[16], fresh[24];
    snprintf(name, sizeof name, "%u", number);
    snprintf(fresh, sizeof fresh, "new-%u", number); /* who sums up would take it for a left one until it is locked */
    owned_fd room = open_room(base, NULL);
    owned_fd mine = room < 0 ? -1 : openat(room, fresh, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (mine < 0 || flock(mine, LOCK_SH | LOCK_NB) < 0 || renameat(room, fresh, room, name) < 0) return root_fail("a reservation of room for an image: %m");
    return root_hand_over(&mine);
}

static unsigned long free_mib(int folder) {
    struct statvfs disk;
    return fstatvfs(folder, &disk) < 0 ? 0 : (unsigned long)(disk.f_bavail * disk.f_frsize >> 20);
}

/* MiB of images that may be removed. */
static unsigned long sum_idle(int base, const struct cache *cache) {
    unsigned long sum = 0;
    for (size_t i = 0; i < cache->count; i++) {
        owned_fd own = open_folder(base, cache->all[i].user);
        if (own >= 0 && !is_used(own, cache->all[i].id)) sum += cache->all[i].mib;
    }
    return sum;
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
    owned_fd lock = -1, room = open_room(base, &lock);
    owned_fd own = room < 0 ? -1 : open_folder(base, name);
    owned_cache cache = {0};
    if (own < 0 || read_cache(base, room, mine, &cache) < 0) return -1;
    unsigned long idle = sum_idle(base, &cache), left = cache.total - idle + cache.reserved;
    if (bound_mib && left + needed > bound_mib) { /* nothing is removed in vain */
        *answer = (struct container_room){CONTAINER_CACHE_FULL, left, bound_mib};
        return 0;
    }
    if (free_mib(own) + idle >= needed)
        for (size_t i = 0; i < cache.count && ((bound_mib && cache.total + cache.reserved + needed > bound_mib) || free_mib(own) < needed); i++)
            if (evict(base, &cache.all[i])) cache.total -= cache.all[i].mib;
    if (bound_mib && cache.total + cache.reserved + needed > bound_mib)
        *answer = (struct container_room){CONTAINER_CACHE_FULL, cache.total + cache.reserved, bound_mib};
    else if (free_mib(own) < needed) *answer = (struct container_room){CONTAINER_DISK_FULL, free_mib(own), 0};
    else return write_reservation(mine, needed);
    return 0;
}
