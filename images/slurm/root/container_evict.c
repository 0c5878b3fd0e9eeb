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

/* The file is its user's: a number that is too large is as large as may be, and no reading of it waits. */
static unsigned long read_size(int image) {
    char text[24] = "";
    struct stat found;
    owned_fd file = openat(image, "size", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || fstat(file, &found) < 0 || !S_ISREG(found.st_mode) || read(file, text, sizeof text - 1) <= 0) return 0;
    unsigned long mib = strtoul(text, NULL, 10);
    return mib < (1UL << 30) ? mib : 1UL << 30;
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

int container_evict(int base, unsigned long bound_mib) {
    struct cached *all = calloc(IMAGES_MAX, sizeof *all);
    size_t count = 0;
    unsigned long total = 0;
    if (all == NULL) return root_fail("out of memory");
    owned_folder users = root_read_folder(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; users && count < IMAGES_MAX && (entry = readdir(users));)
        if (is_user(entry->d_name)) count += list_user(base, entry->d_name, all + count, IMAGES_MAX - count);
    for (size_t i = 0; i < count; i++) total += all[i].mib;
    qsort(all, count, sizeof *all, by_use);
    for (size_t i = 0; i < count && ((bound_mib && total > bound_mib) || is_full(base)); i++)
        if (evict(base, &all[i])) total -= all[i].mib;
    free(all);
    return 0;
}
