/* The mark beside a cache of the driver's libraries, and what of ldconfig's is kept. */
#include "driver.c"

#include "harness.h"

static void write_file(const char *name, const char *text, size_t length) {
    owned_fd file = openat(scratch(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length);
}

static void run_mark(char *text, size_t length) {
    write_file("1.cache", "x", 1);
    write_file("1.mark", text, length);
    bool is_same = is_fresh(scratch(), "1.cache", "1.mark", 0xcbf29ce484222325u);
    CHECK(!is_same || strpbrk(text, "cC"));
}

static const char *const words[] = {"cbf29ce484222325\n", "0x", "-", " ", "cbf29ce4", NULL};
const struct fuzz fuzzes[] = {{"driver-mark", run_mark, words}, {0}};

void check(void) {
    struct stat found;
    CHECK(!is_fresh(scratch(), "1.cache", "1.mark", 0));
    CHECK(write_mark(scratch(), "1.mark", 0x12) == 0 && !is_fresh(scratch(), "1.cache", "1.mark", 0x12)); /* there is no cache yet */
    write_file("1.cache", "x", 1);
    CHECK(is_fresh(scratch(), "1.cache", "1.mark", 0x12) && !is_fresh(scratch(), "1.cache", "1.mark", 0x13));
    CHECK(symlinkat("1.mark", scratch(), "2.mark") == 0 && !is_fresh(scratch(), "1.cache", "2.mark", 0x12));

    CHECK(keep(scratch(), "3.cache") == -1 && mkdirat(scratch(), ".work", 0700) == 0 && keep(scratch(), "3.cache") == -1);
    CHECK(symlinkat("/etc/passwd", scratch(), ".work/cache") == 0 && keep(scratch(), "3.cache") == -1 && unlinkat(scratch(), ".work/cache", 0) == 0);
    CHECK(mkfifoat(scratch(), ".work/cache", 0600) == 0 && keep(scratch(), "3.cache") == -1 && unlinkat(scratch(), ".work/cache", 0) == 0);
    write_file(".work/cache", "", 0);
    CHECK(keep(scratch(), "3.cache") == -1);
    write_file(".work/cache", "libraries", 9);
    CHECK(keep(scratch(), "3.cache") == 0 && fstatat(scratch(), "3.cache", &found, AT_SYMLINK_NOFOLLOW) == 0 && found.st_size == 9);
}
