/* Trees that users make as hard to remove as they can: nobody waits for one, one user's do not hold up another's, and nothing outside is touched. */
#include "gone.c"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "harness.h"

const struct fuzz fuzzes[] = {{0}};

enum { ALICE = 1000, CAROL = 2000 };

static int base = -1; /* of root's; users' folders are in it, as with images */

static int make_folder(int parent, const char *name) {
    CHECK(mkdirat(parent, name, 0700) == 0 || errno == EEXIST);
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(folder >= 0);
    return folder;
}

static void make_file(int parent, const char *name) {
    owned_fd file = openat(parent, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0);
}

static bool exists(int parent, const char *name) { return faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

/* Takes `count` folders and files in each of `wide` folders. */
static void make_wide(int parent, const char *name, int wide, int count) {
    char text[16];
    owned_fd top = make_folder(parent, name);
    for (int i = 0; i < wide; i++) {
        snprintf(text, sizeof text, "d%d", i);
        owned_fd one = make_folder(top, text);
        for (int j = 0; j < count; j++) {
            snprintf(text, sizeof text, "%d", j);
            make_file(one, text);
        }
    }
}

static void make_deep(int parent, const char *name, int levels) {
    int at = make_folder(parent, name);
    for (int i = 0; i < levels; i++) {
        int next_one = make_folder(at, "d");
        close(at);
        at = next_one;
    }
    close(at);
}

static int turns_until_empty(double deadline_s) {
    int turns = 0;
    for (double until = now_s() + deadline_s; root_gone_remove(base, 0.1) != GONE_EMPTY; turns++) CHECK(now_s() < until);
    return turns;
}

static void check_shapes(void) {
    owned_fd outside = make_folder(base, "outside"), own = make_folder(base, "user");
    make_file(outside, "precious");
    make_wide(outside, "folder", 1, 1);
    make_deep(own, "deep", 400);
    make_wide(own, "wide", 20, 10);
    owned_fd odd = make_folder(own, "odd"), below = make_folder(odd, "below");
    CHECK(mkfifoat(below, "fifo", 0600) == 0 && symlinkat("../../../outside", below, "link") == 0 && symlinkat("../outside", own, "top-link") == 0);
    CHECK(linkat(outside, "precious", below, "other-name", 0) == 0);
    make_file(below, "locked");
    owned_fd held = openat(below, "locked", O_RDONLY | O_CLOEXEC);
    CHECK(flock(held, LOCK_EX) == 0 && flock(below, LOCK_EX) == 0);
    CHECK(fchmod(below, 0) == 0);
    for (const char *const *name = (const char *const[]){"deep", "wide", "odd", "top-link", "missing", NULL}; *name; name++)
        CHECK(root_gone_put(base, CAROL, own, *name) == 0 && !exists(own, *name));
    CHECK(root_gone_count(base, CAROL, 100) == 4 && root_gone_count(base, CAROL, 2) == 2 && root_gone_count(base, ALICE, 100) == 0);
    CHECK(!root_gone_is_empty(base));
    turns_until_empty(20);
    CHECK(root_gone_is_empty(base) && root_gone_count(base, CAROL, 100) == 0 && exists(outside, "precious") && exists(outside, "folder/d0/0"));
}

/* As a process of the user's that has a folder of the tree open. */
static pid_t start_maker(int parent, const char *name) {
    owned_fd top = make_folder(parent, name);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned long i = 0;; i++) {
        char text[32];
        snprintf(text, sizeof text, "%lu", i);
        int one = mkdirat(top, text, 0700) == 0 ? openat(top, text, O_RDONLY | O_DIRECTORY) : -1;
        if (one >= 0) mkdirat(one, "d", 0700);
        if (one >= 0) close(one);
        snprintf(text, sizeof text, "lifted-%lu", i % 10);
        mkdirat(top, text, 0700);
    }
}

static void end_process(pid_t process) {
    kill(process, SIGKILL);
    CHECK(waitpid(process, NULL, 0) == process);
}

static void check_makers(void) {
    owned_fd carols = make_folder(base, "carol"), alices = make_folder(base, "alice");
    pid_t makers[2] = {start_maker(carols, "first"), start_maker(carols, "second")};
    double begin = now_s();
    CHECK(root_gone_put(base, CAROL, carols, "first") == 0 && root_gone_put(base, CAROL, carols, "second") == 0);
    CHECK(now_s() - begin < 2); /* on a busy machine */
    make_wide(alices, "mine", 10, 5);
    make_wide(carols, "third", 10, 5);
    CHECK(root_gone_put(base, ALICE, alices, "mine") == 0);
    begin = now_s();
    while (root_gone_count(base, ALICE, 1)) CHECK(root_gone_remove(base, 0.1) != GONE_STUCK && now_s() - begin < 30);
    CHECK(root_gone_put(base, CAROL, carols, "third") == 0);
    while (root_gone_count(base, CAROL, 9) > 2) CHECK(root_gone_remove(base, 0.1) == GONE_LEFT && now_s() - begin < 40);
    for (int i = 0; i < 2; i++) end_process(makers[i]);
    turns_until_empty(40);
}

/* It goes on where it was killed, between any two of its calls. */
static void check_kills(void) {
    owned_fd own = make_folder(base, "killed");
    make_wide(own, "wide", 20, 5);
    make_deep(own, "deep", 200);
    CHECK(root_gone_put(base, CAROL, own, "wide") == 0 && root_gone_put(base, CAROL, own, "deep") == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            while (root_gone_remove(base, 0.001) != GONE_EMPTY) continue;
            _exit(0);
        }
        struct timespec pause = {.tv_nsec = 300000L * (i + 1)};
        nanosleep(&pause, NULL);
        end_process(child);
    }
    turns_until_empty(20);
}

/* A disk without room for one more folder. */
static void fill_and_remove(void) {
    uid_t user = geteuid();
    char map[32], link[32], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", base);
    ssize_t end = readlink(link, path, sizeof path - 8); /* by its path: what is open is of the old namespace */
    if (end < 0) _exit(errno);
    strcpy(path + end, "/disk");
    int length = snprintf(map, sizeof map, "0 %u 1", (unsigned)user);
    if (unshare(CLONE_NEWNS | (user ? CLONE_NEWUSER : 0)) < 0) _exit(errno);
    owned_fd file = user ? open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC) : -1;
    if (user && (file < 0 || write(file, map, (size_t)length) != length)) _exit(errno);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mkdir(path, 0700) < 0) _exit(errno);
    if (mount("tmpfs", path, "tmpfs", 0, "nr_inodes=600") < 0) _exit(errno);
    int disk = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), own = make_folder(disk, "own");
    close(base);
    base = disk;
    int gone = root_gone_open(disk);
    make_wide(own, "wide", 100, 3);
    make_deep(own, "wide/deep", 100);
    for (int i = 0; mkdirat(own, (char[2]){(char)('A' + i % 26), 0}, 0700) == 0 || errno == EEXIST; i++) {
        char name[16];
        snprintf(name, sizeof name, "wide/%d", i);
        if (mkdirat(own, name, 0700) < 0) break;
    }
    CHECK(errno == ENOSPC && mkdirat(gone, "1", 0700) < 0);
    CHECK(root_gone_put(disk, CAROL, own, "wide") == 0);
    turns_until_empty(20);
    _exit(0);
}

static void check_full_disk(void) {
    int status = -1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) fill_and_remove();
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    unlinkat(base, "disk", AT_REMOVEDIR);
}

/* Where the folder is not root's alone, nothing is put there. */
static void check_folder(void) {
    owned_fd other = make_folder(base, "other");
    make_file(other, "file");
    CHECK(mkdirat(other, ROOT_GONE, 0700) == 0 && fchmodat(other, ROOT_GONE, 0755, 0) == 0);
    CHECK(root_gone_put(other, CAROL, other, "file") == -1 && strstr(root_reason(), "open to others") && exists(other, "file"));
    root_reason_clear();
    CHECK(unlinkat(other, ROOT_GONE, AT_REMOVEDIR) == 0 && symlinkat("../outside", other, ROOT_GONE) == 0);
    CHECK(root_gone_put(other, CAROL, other, "file") == -1 && exists(other, "file") && root_gone_remove(other, 1) == GONE_EMPTY);
    root_reason_clear();
    CHECK(root_gone_remove(-1, 1) == GONE_EMPTY);
    owned_fd project = make_folder(base, "project");
    int flags = 0;
    if (ioctl(project, FS_IOC_GETFLAGS, &flags) < 0) return; /* a file system without flags */
    flags |= FS_PROJINHERIT_FL;
    if (ioctl(project, FS_IOC_SETFLAGS, &flags) < 0) return; /* or without this one */
    owned_fd gone = root_gone_open(project);
    CHECK(gone >= 0 && ioctl(gone, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_PROJINHERIT_FL));
}

void check(void) {
    base = scratch();
    check_shapes();
    check_makers();
    check_kills();
    check_full_disk();
    check_folder();
}
