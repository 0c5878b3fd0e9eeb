/* What root removes of the caches of images: the oldest that nobody uses, and never through a link. */
#include <sys/statvfs.h>

/* The disk: what this machine's has free is nothing that a test may depend on. */
static struct statvfs disk_now = {.f_frsize = 1UL << 20, .f_blocks = 8000, .f_bavail = 8000};

static int read_disk(int folder, struct statvfs *disk) {
    *disk = disk_now;
    return folder < 0 ? -1 : 0;
}

#define fstatvfs read_disk
#include "container_evict.c"

#include "harness.h"

static void make_file(int folder, const char *name, const char *text) {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
}

static int make_folder(int parent, const char *name) {
    CHECK(mkdirat(parent, name, 0700) == 0 || errno == EEXIST);
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY);
    CHECK(folder >= 0);
    return folder;
}

static void name_id(char id[ID + 1], char letter) {
    memset(id, letter, ID);
    id[ID] = 0;
}

/* An image of a user's, of 10 MiB by its own word, last used `age` seconds ago. */
static void make_image(int base, const char *user, char letter, int age) {
    char id[ID + 1];
    name_id(id, letter);
    owned_fd own = make_folder(base, user);
    owned_fd images = make_folder(own, "images");
    owned_fd image = make_folder(images, id);
    owned_fd files = make_folder(image, "rootfs");
    make_file(files, "file", "x");
    make_file(image, "size", "10\n");
    make_file(image, "used", "");
    struct timespec when[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    CHECK(utimensat(image, "used", when, 0) == 0);
}

static bool has_image(int base, const char *user, char letter) {
    char path[128], id[ID + 1];
    name_id(id, letter);
    snprintf(path, sizeof path, "%s/images/%s", user, id);
    return faccessat(base, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void run_size(char *text, size_t length) {
    int image = scratch();
    owned_fd file = openat(image, "size", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length);
    CHECK(read_size(image) <= 1UL << 30);
}

static const char *const words[] = {"10\n", "99999999999999999999", "-1", "x", NULL};
const struct fuzz fuzzes[] = {{"container-size", run_size, words}, {0}};

static int open_reservation(int base, unsigned number) {
    int mine = container_open_reservation(base, number);
    CHECK(mine >= 0);
    return mine;
}

static bool gets(int base, uid_t user, int mine, unsigned long bound, unsigned long needed, int verdict, unsigned long mib) {
    struct container_room answer = {0};
    return container_reserve(base, user, mine, bound, needed, &answer) == 0 && (int)answer.verdict == verdict && answer.mib == mib;
}

/* Two users pull at once: what one has reserved the other does not get, until it is given back or the step has ended. */
static void check_reservations(int base) {
    struct container_room full;
    make_image(base, "1000", 'a', 300);
    make_image(base, "2000", 'b', 100);
    int first = open_reservation(base, 71);
    owned_fd second = open_reservation(base, 72);
    CHECK(gets(base, 1000, first, 100, 200, CONTAINER_CACHE_FULL, 0));
    CHECK(gets(base, 1000, first, 100, 1UL << 30, CONTAINER_CACHE_FULL, 0) && has_image(base, "1000", 'a')); /* not in vain */
    CHECK(container_reserve(base, 1000, first, 0, 1UL << 30, &full) == 0 && full.verdict == CONTAINER_DISK_FULL && has_image(base, "1000", 'a'));
    CHECK(gets(base, 1000, first, 100, 85, CONTAINER_ROOM, 0)); /* the oldest goes, whoever's it is */
    CHECK(!has_image(base, "1000", 'a') && has_image(base, "2000", 'b'));
    CHECK(gets(base, 2000, second, 100, 20, CONTAINER_CACHE_FULL, 85) && has_image(base, "2000", 'b'));
    CHECK(gets(base, 2000, second, 100, 15, CONTAINER_ROOM, 0) && !has_image(base, "2000", 'b'));
    CHECK(gets(base, 1000, first, 100, 0, CONTAINER_ROOM, 0) && gets(base, 2000, second, 100, 100, CONTAINER_ROOM, 0));
    CHECK(gets(base, 1000, first, 100, 1, CONTAINER_CACHE_FULL, 100));
    CHECK(gets(base, 2000, second, 100, 10, CONTAINER_ROOM, 0) && gets(base, 1000, first, 100, 90, CONTAINER_ROOM, 0));
    make_image(base, "2000", 'c', 200);
    CHECK(container_evict(base, 100) == 0 && !has_image(base, "2000", 'c')); /* reserved room is not for images that are idle */
    close(first);
    CHECK(gets(base, 2000, second, 100, 100, CONTAINER_ROOM, 0) && faccessat(base, "room/71", F_OK, 0) < 0);
    CHECK(container_reserve(base, 5000, second, 100, 1, &(struct container_room){0}) < 0); /* who has no folder */
    root_reason_clear();
}

static void remove_all(int base) {
    for (double until = now_ms() + 40e3; root_gone_remove(base, 1) != GONE_EMPTY;) CHECK(now_ms() < until);
}

/* A user's own names beside the folders of jobs are no shield. */
static void check_sweep(int base, int jobs) {
    char path[64], name[16];
    owned_fd left = make_folder(jobs, "9"), pins = make_folder(base, "pins");
    snprintf(path, sizeof path, "/proc/self/fd/%d/.", pins);
    make_file(pins, "7", "");
    make_file(jobs, "no job's", "");
    for (int i = 0; i < 2 * SWEEP_MAX; i++) {
        snprintf(name, sizeof name, "%d", 4000000 + i);
        close(make_folder(jobs, name));
    }
    CHECK(container_sweep(base, path) && root_gone_count(base, 2000, 2 * SWEEP_MAX) == SWEEP_MAX && !container_sweep(base, path));
    do remove_all(base);
    while (container_sweep(base, path));
    CHECK(faccessat(jobs, "7", F_OK, 0) == 0 && faccessat(jobs, "9", F_OK, 0) < 0 && faccessat(jobs, "no job's", F_OK, 0) < 0);
}

/* A user with very many images hides nobody's, and theirs go as well, the listed ones first. */
static void check_many_images(int base) {
    char id[ID + 1];
    owned_fd own = make_folder(base, "1000"), images = make_folder(own, "images");
    for (int i = 0; i < IMAGES_MAX + 10; i++) {
        snprintf(id, sizeof id, "%064x", (unsigned)i);
        close(make_folder(images, id));
    }
    make_image(base, "5000", 'e', 300);
    make_image(base, "6000", 'f', 200);
    make_image(base, "1000", 'a', 100);
    CHECK(container_evict(base, 15) == 0 && !has_image(base, "5000", 'e') && root_gone_count(base, 1000, 2000) >= IMAGES_MAX - 1);
    remove_all(base);
    CHECK(container_evict(base, 5) == 0 && !has_image(base, "6000", 'f') && !has_image(base, "1000", 'a'));
    remove_all(base);
}

/* A user's jobs are read once for all of their images; where they are too many, all images count as used. */
static void check_many_jobs(int base) {
    char name[ID + 1];
    owned_fd own = make_folder(base, "7000"), images = make_folder(own, "images"), jobs = make_folder(own, "jobs"), job = make_folder(jobs, "1");
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%064x", (unsigned)i);
        owned_fd image = make_folder(images, name);
        make_file(image, "size", "1\n");
        snprintf(name, sizeof name, "step-%d", i);
        close(make_folder(job, name));
    }
    double begin = now_ms();
    CHECK(container_evict(base, 0) == 0 && container_evict(base, 1) == 0 && now_ms() - begin < 10e3 && root_gone_count(base, 7000, 2000) == 199);
    remove_all(base);
    make_image(base, "7000", 'b', 100);
    struct cache cache = {0};
    CHECK(list_user(base, "7000", &cache) == 0 && cache.count == 2 && cache.all[1].id[0] == 'b');
    CHECK(!mark_all_used(own, (struct listed){cache.all, cache.count}, &(struct look){100, now_ms() + 60e3}));
    /* A use after the list was made, and one a moment before it. */
    struct cached *listed = &cache.all[1];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK(listed->is_idle && is_fresh(&now) && !is_fresh(&listed->used));
    make_image(base, "7000", 'b', 50);
    CHECK(!take_out(base, listed) && has_image(base, "7000", 'b'));
    free(cache.all);
}

void check(void) {
    int base = scratch();
    check_reservations(base);
    owned_fd outside = make_folder(base, "outside");
    make_file(outside, "precious", "x");
    make_image(base, "1000", 'a', 300);
    make_image(base, "1000", 'b', 100);
    make_image(base, "2000", 'c', 200);
    make_image(base, "2000", 'd', 400); /* the oldest, and used by a job */
    owned_fd own = make_folder(base, "2000");
    owned_fd jobs = make_folder(own, "jobs");
    owned_fd job = make_folder(jobs, "7");
    owned_fd step = make_folder(job, "step-0");
    char id[ID + 2];
    name_id(id, 'd');
    make_file(step, "image", id);
    CHECK(symlinkat("../outside", base, "3000") == 0 && symlinkat("../../outside", own, "images2") == 0);
    CHECK(container_evict(base, 1000) == 0 && has_image(base, "1000", 'a'));
    disk_now.f_bavail = 1000; /* just the eighth that is to be free */
    CHECK(container_evict(base, 1000) == 0 && !container_is_disk_short(base) && has_image(base, "1000", 'a'));
    disk_now.f_bavail = 995; /* one image makes up for it, though the cache may have more */
    CHECK(container_is_disk_short(base) && container_evict(base, 1000) == 0 && !has_image(base, "1000", 'a') && has_image(base, "2000", 'c'));
    disk_now.f_bavail = 8000;
    make_image(base, "1000", 'a', 300);
    CHECK(container_evict(base, 20) == 0);
    CHECK(!has_image(base, "1000", 'a') && has_image(base, "1000", 'b') && !has_image(base, "2000", 'c') && has_image(base, "2000", 'd'));
    CHECK(symlinkat("../../../outside", jobs, "8") == 0);
    CHECK(container_forget_job(base, 2000, 8) <= 0 && container_forget_job(base, 3000, 7) == 0 && container_forget_job(base, 4000, 7) == 0);
    CHECK(faccessat(outside, "precious", F_OK, 0) == 0);
    check_sweep(base, jobs);
    CHECK(container_forget_job(base, 2000, 7) == 0 && container_evict(base, 5) == 0 && !has_image(base, "2000", 'd'));
    remove_all(base);
    check_many_images(base);
    check_many_jobs(base);
    unsigned long bound_mib = 0;
    CHECK(container_ask(base, 7) == 0 && container_ask(base, 204800) == 0 && container_is_asked(base, &bound_mib) && bound_mib == 204800);
    root_reason_clear();
}
