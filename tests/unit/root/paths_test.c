/* Paths for mounts and folders of logs: no link is followed in either. And the reasons that all of them give. */
#include <sys/file.h>

#include "gone.h"
#include "harness.h"
#include "lock.h"
#include "log.c"
#include "mount.h"

static bool exists(const char *path) { return faccessat(scratch(), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }
static void make_folder(const char *path) { CHECK(mkdirat(scratch(), path, 0755) == 0); }

static void make_file(const char *path) {
    owned_fd file = openat(scratch(), path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(file >= 0);
}

/* Paths as conf.c lets them through. */
static void run_target(char *text, size_t length) {
    char path[1024] = "/target";
    size_t used = strlen(path);
    for (size_t i = 0; i < length && used < 500; i++) {
        bool is_break = text[i] == '/' || text[i] == 0;
        if (is_break ? path[used - 1] != '/' : text[i] != '.') path[used++] = is_break ? '/' : text[i];
    }
    while (path[used - 1] == '/') used--;
    path[used] = 0;
    root_reason_clear();
    owned_fd target = root_target(scratch(), path, length % 2);
    CHECK(target >= 0 ? exists(path + 1) : *root_reason() != 0);
    CHECK(root_gone_put(scratch(), 1000, scratch(), "target") == 0);
    while (root_gone_remove(scratch(), 1) == GONE_LEFT) continue;
}

static void run_reason(char *text, size_t length) {
    root_reason_clear();
    for (char *at = text; at <= text + length; at += strlen(at) + 1) {
        CHECK(root_fail("%s", at) == -1);
        CHECK(strlen(root_reason()) < 4096);
    }
}

static const char *const target_words[] = {"/etc/ld.so.cache", "/", "/a/b/c", NULL};
static const char *const reason_words[] = {"/etc/slipway/root/root.conf:7: not key=value", "\n", "%s%n", NULL};
const struct fuzz fuzzes[] = {{"target", run_target, target_words}, {"reason", run_reason, reason_words}, {0}};

static void check_targets(void) {
    struct stat found;
    owned_fd folder = root_target(scratch(), "/a/b", false);
    CHECK(folder >= 0 && fstat(folder, &found) == 0 && S_ISDIR(found.st_mode) && fcntl(folder, F_GETFD) == FD_CLOEXEC);
    owned_fd file = root_target(scratch(), "/a/c/file", true);
    CHECK(file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == 0);
    CHECK(symlinkat("b", scratch(), "a/link") == 0 && root_target(scratch(), "/a/link", false) == -1);
    CHECK(strstr(root_reason(), "only folders can lead to a mount") && root_target(scratch(), "/a/link/x", false) == -1 && !exists("a/b/x"));
    CHECK(root_target(scratch(), "/a/link", true) == -1 && root_target(scratch(), "/a/b", true) == -1 && root_target(scratch(), "/a/c/file/x", true) == -1);
    root_reason_clear();
}

static void check_logs(void) {
    int left = FOLDERS;
    make_folder("from");
    make_folder("from/apt");
    make_folder("from/apt/sub");
    make_file("from/file");
    CHECK(symlinkat("../outside", scratch(), "from/link") == 0);
    make_folder("to");
    owned_fd from = open_folder(scratch(), "from"), to = open_folder(scratch(), "to");
    copy_folders(from, to, LEVELS, &left);
    CHECK(exists("to/apt") && !exists("to/file") && !exists("to/link"));
    CHECK(geteuid() != 0 || (exists("to/apt/sub") && left == FOLDERS - 2));
    left = 0;
    make_folder("from/more");
    copy_folders(from, to, LEVELS, &left);
    CHECK(!exists("to/more"));
    CHECK(!is_link(scratch()));
    make_folder("var");
    CHECK(!is_link(scratch()) && symlinkat("elsewhere", scratch(), "var/log") == 0 && is_link(scratch()));
    CHECK(root_log_place(scratch(), "1", false) == 0);
}

static void check_locks(void) {
    make_file("lock");
    owned_fd one = openat(scratch(), "lock", O_RDONLY | O_CLOEXEC), two = openat(scratch(), "lock", O_RDONLY | O_CLOEXEC);
    CHECK(root_lock(one, "x", 0) == 0 && root_lock(two, "x", 0) == -2 && *root_reason() == 0);
    root_close_now(&one);
    CHECK(one == -1 && root_lock(two, "x", 0) == 0);
}

static void check_reasons(void) {
    errno = ENOENT;
    CHECK(root_fail("a: %m") == -1 && errno == ENOENT && strcmp(root_reason(), "a: No such file or directory") == 0);
    CHECK(root_fail("b") == -1 && strcmp(root_reason(), "a: No such file or directory\nb") == 0);
    for (int i = 0; i < 3000; i++) root_fail("line %d", i);
    CHECK(strlen(root_reason()) == 4095);
    root_reason_clear();
    CHECK(*root_reason() == 0);
}

void check(void) {
    check_targets();
    check_logs();
    check_locks();
    check_reasons();
}
