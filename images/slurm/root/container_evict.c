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

#include "gone.h"
#include "owned.h"
#include "reason.h"

/* What one user's folders may cost others. */
enum { ID = 64, IMAGES_MAX = 1024, ENTRIES_MAX = 10000, USER_MS = 3000, SWEEP_MAX = 64, FRESH_MS = 100, DISK_S = 60 };

/* Beside the users' folders: a file for each step that may pull, with what it has reserved, locked while the step runs. */
#define ROOM "room"
#define ASKED ROOT_GONE "/cache"

struct cached {
    char user[16], id[ID + 1];
    unsigned long mib;
    time_t order;         /* when it was last used */
    struct timespec used; /* the same, to notice a use meanwhile; zero: never */
    bool is_idle;         /* no step has it */
};

struct cache {
    struct cached *all; /* those first that were used longest ago */
    size_t count, room;
    unsigned long total, reserved; /* MiB: of all images, and of pulls that are under way */
};

static void free_cache(const struct cache *cache) { free(cache->all); }

#define owned_cache __attribute__((cleanup(free_cache))) struct cache

static int open_folder(int parent, const char *name) { return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

static bool is_user(const char *text) { return *text && strlen(text) < 16 && strspn(text, "0123456789") == strlen(text); }

static bool is_id(const char *text) { return strlen(text) == ID && strspn(text, "0123456789abcdef") == ID; }

static uid_t to_user(const char *text) { return (uid_t)strtoul(text, NULL, 10); }

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* How much of a user's folders is still looked at. */
struct look {
    int left;
    double until;
};

static bool goes_on(struct look *look) { return look->left-- > 0 && now_ms() < look->until; }

int container_forget_job(int base, uid_t user, uint32_t job) {
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)user);
    owned_fd own = open_folder(base, name);
    owned_fd jobs = own < 0 ? -1 : open_folder(own, "jobs");
    if (jobs < 0) return 0; /* the user has had no containers here */
    snprintf(name, sizeof name, "%u", job);
    return root_gone_put(base, user, jobs, name);
}

/* Whatever is no folder of a job with a pin. */
static bool sweep_user(int base, const char *user, int pins) {
    struct look look = {ENTRIES_MAX, now_ms() + USER_MS};
    owned_fd own = open_folder(base, user);
    owned_fd jobs = own < 0 ? -1 : open_folder(own, "jobs");
    owned_folder all = jobs < 0 ? NULL : root_read_folder(openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    unsigned most = SWEEP_MAX - root_gone_count(base, to_user(user), SWEEP_MAX), count = 0;
    for (const struct dirent *entry; all && count < most && (entry = readdir(all)) && goes_on(&look);) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (is_user(entry->d_name) && (faccessat(pins, entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)) continue;
        count += root_gone_put(base, to_user(user), jobs, entry->d_name) == 0;
    }
    return count > 0;
}

bool container_sweep(int base, const char *path) {
    bool has_swept = false;
    owned_fd pins = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    owned_folder users = pins < 0 ? NULL : root_read_folder(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; users && (entry = readdir(users));)
        if (is_user(entry->d_name)) has_swept |= sweep_user(base, entry->d_name, pins);
    return has_swept;
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

static struct cached *add(struct cache *cache) {
    if (cache->count == cache->room) {
        size_t room = cache->room ? 2 * cache->room : 64;
        struct cached *all = realloc(cache->all, room * sizeof *all);
        if (all == NULL) return NULL;
        cache->all = all, cache->room = room;
    }
    cache->all[cache->count] = (struct cached){0};
    return &cache->all[cache->count++];
}

/* The time of a container's start with the image (container_pull.c), which it sets while it has the image's lock. */
static struct timespec read_used(int image) {
    struct stat found;
    return fstatat(image, "used", &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_mtim : (struct timespec){0};
}

/* Clocks of files have ticks: two uses within one look alike. */
static bool is_fresh(const struct timespec *used) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double age_ms = (double)(now.tv_sec - used->tv_sec) * 1e3 + (double)(now.tv_nsec - used->tv_nsec) / 1e6;
    return age_ms >= 0 && age_ms < FRESH_MS;
}

/* The lock is held while it is pulled, and while a job begins to use it. */
static int lock_image(int images, const char *id) {
    char name[ID + 8];
    snprintf(name, sizeof name, "%s.lock", id);
    owned_fd lock = openat(images, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock < 0 && errno == ENOENT) return open("/dev/null", O_RDONLY | O_CLOEXEC); /* nobody has begun to use it since it was made */
    return lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 ? -1 : root_hand_over(&lock);
}

/* Its use is read before its lock is tried, and the lock before the jobs are read: take_out has what began later. False without memory. */
static bool list_image(int images, const char *user, const char *id, struct cache *cache) {
    time_t now = time(NULL);
    owned_fd image = open_folder(images, id);
    if (image < 0) return true;
    struct cached *one = add(cache);
    if (one == NULL) return false;
    snprintf(one->user, sizeof one->user, "%.15s", user);
    snprintf(one->id, sizeof one->id, "%.64s", id);
    one->mib = read_size(image);
    one->used = read_used(image);
    one->order = one->used.tv_sec < now ? one->used.tv_sec : now;
    owned_fd lock = is_fresh(&one->used) ? -1 : lock_image(images, id);
    one->is_idle = lock >= 0;
    return true;
}

static int by_use(const void *left, const void *right) {
    time_t first = ((const struct cached *)left)->order, second = ((const struct cached *)right)->order;
    return first < second ? -1 : first > second;
}

static int by_id(const void *left, const void *right) { return strcmp(((const struct cached *)left)->id, ((const struct cached *)right)->id); }

struct listed {
    struct cached *all; /* by id */
    size_t count;
};

static void mark_used(int job, const char *container, struct listed listed) {
    struct cached wanted = {0};
    owned_fd folder = *container == '.' ? -1 : open_folder(job, container);
    owned_fd image = folder < 0 ? -1 : openat(folder, "image", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (image < 0 || read(image, wanted.id, ID) != ID) return;
    struct cached *found = bsearch(&wanted, listed.all, listed.count, sizeof wanted, by_id);
    if (found) found->is_idle = false;
}

/* The image of each container of the user's jobs that have not ended on this node. False where that is not to be told. */
static bool mark_all_used(int own, struct listed listed, struct look *look) {
    owned_fd jobs = open_folder(own, "jobs");
    owned_folder all = jobs < 0 ? NULL : root_read_folder(openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; all && (entry = readdir(all));) {
        if (!goes_on(look)) return false;
        owned_fd job = is_user(entry->d_name) ? open_folder(jobs, entry->d_name) : -1;
        owned_folder containers = job < 0 ? NULL : root_read_folder(openat(job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (const struct dirent *one; containers && (one = readdir(containers));) {
            if (!goes_on(look)) return false;
            mark_used(job, one->d_name, listed);
        }
    }
    return true;
}

/* Where a user has more images than are looked at, the idle ones among these go first, and so the others get their turn. Where the jobs are too many,
   all of the user's images count as used. */
static int list_user(int base, const char *user, struct cache *cache) {
    struct look look = {ENTRIES_MAX, now_ms() + USER_MS};
    size_t before = cache->count;
    bool has_more = false;
    owned_fd own = open_folder(base, user);
    owned_fd images = own < 0 ? -1 : open_folder(own, "images");
    owned_folder folder = images < 0 ? NULL : root_read_folder(openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; folder && !has_more && (entry = readdir(folder));) {
        has_more = !goes_on(&look) || cache->count - before >= IMAGES_MAX;
        if (!has_more && is_id(entry->d_name) && !list_image(images, user, entry->d_name, cache)) return root_fail("out of memory");
    }
    struct listed listed = {cache->all + before, cache->count - before};
    if (listed.count == 0) return 0;
    qsort(listed.all, listed.count, sizeof *listed.all, by_id);
    look = (struct look){ENTRIES_MAX, now_ms() + USER_MS};
    bool is_known = mark_all_used(own, listed, &look);
    for (size_t i = 0; i < listed.count; i++) {
        if (!is_known) listed.all[i].is_idle = false;
        if (has_more) listed.all[i].order = 0;
    }
    return 0;
}

/* Takes an image out of the cache, unless somebody uses it now, or has since it was listed. */
static bool take_out(int base, const struct cached *one) {
    owned_fd own = open_folder(base, one->user);
    owned_fd images = own < 0 ? -1 : open_folder(own, "images");
    owned_fd image = images < 0 ? -1 : open_folder(images, one->id);
    owned_fd lock = image < 0 ? -1 : lock_image(images, one->id);
    if (lock < 0) return false;
    struct timespec used = read_used(image);
    if (used.tv_sec != one->used.tv_sec || used.tv_nsec != one->used.tv_nsec) return false;
    return root_gone_put(base, to_user(one->user), images, one->id) == 0;
}

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
    owned_folder users = root_read_folder(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; users && (entry = readdir(users));)
        if (is_user(entry->d_name) && list_user(base, entry->d_name, cache) < 0) return -1;
    for (size_t i = 0; i < cache->count; i++) cache->total += cache->all[i].mib;
    if (cache->count) qsort(cache->all, cache->count, sizeof *cache->all, by_use);
    cache->reserved = sum_reserved(room, mine);
    return 0;
}

static int lock_file(int room, const char *name) {
    owned_fd lock = openat(room, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) < 0)
        if (errno != EINTR) return root_fail("locking the cache of images: %m");
    return lock < 0 ? root_fail("locking the cache of images: %m") : root_hand_over(&lock);
}

/* The folder of reservations. */
static int open_room(int base) {
    if (mkdirat(base, ROOM, 0700) < 0 && errno != EEXIST) return root_fail("the folder " ROOM ": %m");
    owned_fd room = open_folder(base, ROOM);
    struct stat found;
    if (room < 0 || fstat(room, &found) < 0) return root_fail("the folder " ROOM ": %m");
    if (found.st_uid != geteuid()) return root_fail("the folder " ROOM " belongs to another user");
    return root_hand_over(&room);
}

/* What only one at a time has, and never for longer than the users' folders take to be looked at. */
static int lock_cache(int room) { return lock_file(room, "lock"); }

/* Of a user's requests only one waits for the cache at a time. */
static int lock_own(int room, uid_t user) {
    char name[24];
    snprintf(name, sizeof name, "user-%u", (unsigned)user);
    return lock_file(room, name);
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

bool container_is_disk_short(int base) { return missing_mib(base) > 0; }

/* Takes idle images out, those first that were used longest ago, until the cache has no more than `most` MiB and `freed` MiB of disk, by their users'
   word, will be free. */
static void take_out_until(int base, struct cache *cache, unsigned long most, unsigned long freed) {
    unsigned long before = cache->total;
    for (size_t i = 0; i < cache->count && (cache->total > most || before - cache->total < freed); i++)
        if (cache->all[i].is_idle && take_out(base, &cache->all[i])) cache->total -= cache->all[i].mib;
}

int container_evict(int base, unsigned long bound_mib) {
    owned_fd room = open_room(base);
    owned_fd lock = room < 0 ? -1 : lock_cache(room);
    owned_cache cache = {0};
    if (lock < 0 || read_cache(base, room, -1, &cache) < 0) return -1;
    unsigned long most = !bound_mib ? ULONG_MAX : bound_mib > cache.reserved ? bound_mib - cache.reserved : 0;
    take_out_until(base, &cache, most, missing_mib(base));
    return 0;
}

/* The text is as long each time: a full disk takes it, too. */
int container_ask(int base, unsigned long bound_mib) {
    char text[24];
    owned_fd gone = root_gone_open(base);
    owned_fd file = gone < 0 ? -1 : openat(base, ASKED, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int length = snprintf(text, sizeof text, "%-20lu\n", bound_mib);
    return file >= 0 && pwrite(file, text, (size_t)length, 0) == length ? 0 : root_fail("asking for room in the cache of images: %m");
}

bool container_is_asked(int base, unsigned long *bound_mib) {
    owned_fd file = openat(base, ASKED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0) *bound_mib = read_number(file);
    return file >= 0;
}

int container_open_reservation(int base, unsigned number) {
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    owned_fd room = open_room(base);
    owned_fd lock = room < 0 ? -1 : lock_cache(room); /* who sums up takes one without a lock for a left one */
    if (lock < 0) return -1;
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

/* Until the remover has removed enough, or all there is. */
static void await_disk(int base, int own, unsigned long needed) {
    const struct timespec pause = {.tv_nsec = 50 * 1000000};
    for (double until = now_ms() + DISK_S * 1e3; free_mib(own) < needed && !root_gone_is_empty(base) && now_ms() < until;) nanosleep(&pause, NULL);
}

int container_reserve(int base, uid_t user, int mine, unsigned long bound_mib, unsigned long needed, struct container_room *answer) {
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)user);
    *answer = (struct container_room){.verdict = CONTAINER_ROOM};
    if (needed == 0) return write_reservation(mine, 0);
    owned_fd own = open_folder(base, name), room = own < 0 ? -1 : open_room(base);
    owned_fd turn = room < 0 ? -1 : lock_own(room, user);
    owned_fd lock = turn < 0 ? -1 : lock_cache(room);
    owned_cache cache = {0};
    if (lock < 0 || read_cache(base, room, mine, &cache) < 0) return -1;
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
    root_close_now(&turn);
    if (fits) await_disk(base, own, needed);
    if (!fits) *answer = (struct container_room){CONTAINER_CACHE_FULL, cache.total + cache.reserved, bound_mib};
    else if (free_mib(own) < needed) *answer = (struct container_room){CONTAINER_DISK_FULL, free_mib(own), 0};
    return answer->verdict == CONTAINER_DISK_FULL ? write_reservation(mine, 0) : 0;
}
