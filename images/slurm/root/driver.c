#include "driver.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gone.h"
#include "lock.h"
#include "mount.h"
#include "owned.h"
#include "reason.h"
#include "run.h"
#include "version.h"

#define CACHES "/run/nvidia/cache"
#define WORK CACHES "/.work"
#define LOCK ROOT_LOCKS "/driver"
enum { NOBODY = 65534, LDCONFIG_S = 60, CLEAN_S = 5, CACHE_MAX = 64 << 20 };

/* FNV-1a: enough to notice a change, and it keeps no secret. */
static uint64_t hash(uint64_t value, const void *bytes, size_t length) {
    for (const unsigned char *each = bytes; length--; each++) value = (value ^ *each) * 0x100000001b3u;
    return value;
}

static uint64_t hash_stat(uint64_t value, const struct stat *found) {
    value = hash(value, &found->st_ino, sizeof found->st_ino);
    value = hash(value, &found->st_size, sizeof found->st_size);
    value = hash(value, &found->st_mtim.tv_sec, sizeof found->st_mtim.tv_sec);
    return hash(value, &found->st_mtim.tv_nsec, sizeof found->st_mtim.tv_nsec);
}

/* What a cache was made from: the version's own cache and the driver's files, in any order. */
static uint64_t fingerprint(DIR *libraries) {
    const uint64_t start = 0xcbf29ce484222325u;
    struct stat found;
    uint64_t sum = stat("/etc/ld.so.cache", &found) == 0 ? hash_stat(start, &found) : start;
    for (const struct dirent *entry; (entry = readdir(libraries));)
        if (entry->d_name[0] != '.' && fstatat(dirfd(libraries), entry->d_name, &found, 0) == 0)
            sum += hash_stat(hash(start, entry->d_name, strlen(entry->d_name)), &found);
    return sum;
}

/* The version's own ldconfig: as nobody, without a right, on a read-only root. A version's content is trusted by its users, not by the node. */
static void run_ldconfig(void) {
    char *const argv[] = {"ldconfig", "-X", "-C", WORK "/cache", ROOT_DRIVER_LIB, NULL}, *const environment[] = {NULL};
    struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY};
    int null = open("/dev/null", O_RDWR); /* stays open in the program where 0, 1 or 2 was closed */
    if (unshare(CLONE_NEWNS) < 0 || mount_setattr(AT_FDCWD, "/", 0, &wanted, sizeof wanted) < 0) _exit(121);
    for (int standard = 0; standard < 3; standard++) dup2(null, standard);
    close_range(3, ~0U, 0);
    if (chdir("/") < 0 || setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0) _exit(122);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) _exit(123);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGALRM, SIG_DFL);
    alarm(LDCONFIG_S);
    execve("/sbin/ldconfig", argv, environment);
    _exit(127);
}

/* Copies what nobody wrote into a file of root's, so that it changes no more, and puts it in place in one step. */
static int keep(int caches, const char *name) {
    owned_fd from = openat(caches, ".work/cache", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    owned_fd to = openat(caches, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    struct stat found;
    int result = -1;
    if (from >= 0 && to >= 0 && fstat(from, &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0 && found.st_size <= CACHE_MAX) {
        char bytes[65536];
        off_t left = found.st_size;
        ssize_t count = 0;
        while (left > 0 && (count = read(from, bytes, sizeof bytes)) > 0 && write(to, bytes, (size_t)count) == count) left -= count;
        if (left <= 0) result = fchmod(to, 0644) == 0 && renameat(caches, ".new", caches, name) == 0 ? 0 : -1;
    }
    return result == 0 ? 0 : root_fail("ldconfig of the root gave no usable cache for the driver's libraries");
}

/* What ldconfig left: what nobody's processes are still adding to stays for the next time. */
static int clean(int caches) {
    if (root_gone_put(caches, NOBODY, caches, ".work") < 0) return -1;
    root_gone_remove(caches, CLEAN_S);
    return 0;
}

static int make(int caches, const char *name) {
    if (clean(caches) < 0) return -1;
    if (mkdirat(caches, ".work", 0700) < 0 || fchownat(caches, ".work", NOBODY, NOBODY, AT_SYMLINK_NOFOLLOW) < 0) return root_fail(WORK ": %m");
    pid_t child = fork();
    if (child < 0) return root_fail("fork: %m");
    if (child == 0) run_ldconfig();
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return root_fail("waiting for ldconfig: %m");
    int result = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) result = keep(caches, name);
    else if (WIFEXITED(status)) root_fail("the root's /sbin/ldconfig, run for the driver's libraries, gave %d", WEXITSTATUS(status));
    else root_fail("the root's /sbin/ldconfig, run for the driver's libraries, took more than %d s or was killed", LDCONFIG_S);
    return clean(caches) < 0 ? -1 : result;
}

/* The mark beside a cache says what it was made from. */
static bool is_fresh(int caches, const char *name, const char *mark, uint64_t wanted) {
    char text[32] = "";
    owned_fd file = openat(caches, mark, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool is_read = file >= 0 && read(file, text, sizeof text - 1) > 0;
    return is_read && strtoull(text, NULL, 16) == wanted && faccessat(caches, name, R_OK, 0) == 0;
}

static int write_mark(int caches, const char *mark, uint64_t value) {
    owned_fd file = openat(caches, mark, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    return file >= 0 && dprintf(file, "%016" PRIx64 "\n", value) > 0 ? 0 : root_fail(CACHES "/%s: %m", mark);
}

static int refresh(DIR *libraries, int caches, const char *version) {
    char name[ROOT_VERSION_MAX + 16], mark[ROOT_VERSION_MAX + 16];
    snprintf(name, sizeof name, "%s.cache", version);
    snprintf(mark, sizeof mark, "%s.mark", version);
    owned_fd lock = open(LOCK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600); /* not the folder of caches, which ldconfig, as nobody, goes through */
    if (lock < 0) return root_fail(LOCK ": %m");
    if (root_lock(lock, "the driver's libraries", ROOT_LOCK_S) < 0) return -1;
    uint64_t wanted = fingerprint(libraries);
    if (!is_fresh(caches, name, mark, wanted)) {
        unlinkat(caches, mark, 0); /* a half-way failure must not look fresh */
        if (make(caches, name) < 0 || write_mark(caches, mark, wanted) < 0) return -1;
    }
    char path[sizeof CACHES + sizeof name + 1];
    snprintf(path, sizeof path, CACHES "/%s", name);
    owned_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), tree = root_clone(path, false);
    owned_fd target = root < 0 ? -1 : root_target(root, "/etc/ld.so.cache", true);
    if (tree >= 0 && target >= 0 && root_restrict(tree, MOUNT_ATTR_RDONLY) == 0 && root_attach(root_hand_over(&tree), target) == 0) return 0;
    return root_fail("binding the node's ld.so.cache: %m");
}

int root_driver_cache(const char *version) {
    owned_folder libraries = opendir(ROOT_DRIVER_LIB);
    if (libraries == NULL) return errno == ENOENT ? 0 : root_fail(ROOT_DRIVER_LIB ": %m");
    owned_fd caches = mkdir(CACHES, 0755) < 0 && errno != EEXIST ? -1 : open(CACHES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return caches < 0 ? root_fail(CACHES ": %m") : refresh(libraries, caches, version);
}
