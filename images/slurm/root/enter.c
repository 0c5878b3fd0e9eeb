#include "enter.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk.h"
#include "gone.h"
#include "lock.h"
#include "mount.h"
#include "owned.h"
#include "place.h"
#include "reason.h"
#include "run.h"

typedef char job_name[16];

/* A folder of root's alone, made where missing. */
static int own_folder(const char *path, mode_t mode) {
    if (mkdir(path, mode) < 0 && errno != EEXIST) return root_fail("%s: %m", path);
    owned_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat found;
    if (folder < 0 || fstat(folder, &found) < 0) return root_fail("%s: %m", path);
    if (found.st_uid == 0 && ((found.st_mode & 07777) == mode || fchmod(folder, mode) == 0)) return root_hand_over(&folder);
    return root_fail("%s does not belong to root", path);
}

/* /run is open to users, so what is locked lies below. */
static int make_run(void) {
    owned_fd run = own_folder(ROOT_RUN, 0755);
    owned_fd stage = run < 0 ? -1 : own_folder(ROOT_STAGE, 0700);
    owned_fd locks = stage < 0 ? -1 : own_folder(ROOT_LOCKS, 0700);
    return locks < 0 ? -1 : 0;
}

/* The folder of pins is a private mount: the kernel pins a namespace nowhere else. Gives it, opened. */
static int open_pins(void) {
    if (make_run() < 0) return -1;
    owned_fd pins = own_folder(ROOT_PINS, 0700); /* mounted on itself, it is one and the same file for locks */
    int result = -1;
    struct statx found;
    if (pins < 0 || root_lock(pins, ROOT_PINS, ROOT_PINS_S) < 0) return -1;
    if (statx(AT_FDCWD, ROOT_PINS, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &found) < 0) root_fail(ROOT_PINS ": %m");
    else if (!(found.stx_attributes & STATX_ATTR_MOUNT_ROOT) && mount(ROOT_PINS, ROOT_PINS, NULL, MS_BIND, NULL) < 0) root_fail("mounting " ROOT_PINS ": %m");
    else if (mount(NULL, ROOT_PINS, NULL, MS_PRIVATE, NULL) < 0) root_fail("making " ROOT_PINS " private: %m");
    else result = open(ROOT_PINS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return result;
}

/* One at a time for a job; the file holds the version's name once the pin is there. -2: `may_wait` is false and another has it. */
static int lock_job(int pins, const char *name, bool may_wait) {
    char file[32], what[sizeof file + 8];
    snprintf(file, sizeof file, "%s.lock", name);
    snprintf(what, sizeof what, "job %s", name);
    for (;;) {
        owned_fd lock = openat(pins, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        struct stat found;
        if (lock < 0) return root_fail(ROOT_PINS "/%s: %m", file);
        int taken = root_lock(lock, what, may_wait ? ROOT_LOCK_S : 0);
        if (taken < 0) return taken;
        if (fstat(lock, &found) == 0 && found.st_nlink == 1) return root_hand_over(&lock); /* else its last owner has removed it meanwhile */
    }
}

/* A pin, opened, where there is one; else -1 without a reason. */
static int open_pin(int pins, const char *name) {
    owned_fd pin = openat(pins, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct statfs found;
    return pin >= 0 && fstatfs(pin, &found) == 0 && found.f_type == NSFS_MAGIC ? root_hand_over(&pin) : -1;
}

static int make_path(const char *path) {
    char part[ROOT_PATH_MAX];
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST) return root_fail("%s: %m", part);
    }
    return own_folder(path, 0700);
}

/* The job's own /tmp and /var/tmp: open to all, below folders that only root enters. */
static int make_tmp(const struct root_conf *conf, const char *name) {
    owned_fd top = make_path(conf->tmp);
    if (top < 0) return -1;
    owned_fd own = mkdirat(top, name, 0700) < 0 && errno != EEXIST ? -1 : openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = own < 0 ? -1 : 0;
    static const char *const folders[] = {"tmp", "var_tmp"};
    for (size_t i = 0; i < 2 && result == 0; i++)
        if ((mkdirat(own, folders[i], 0700) < 0 && errno != EEXIST) || fchmodat(own, folders[i], 01777, 0) < 0) result = -1;
    return result < 0 ? root_fail("%s/%s: %m", conf->tmp, name) : 0;
}

/* The number of the caller's mount namespace; 0 where the kernel does not tell. */
static uint64_t space_number(void) {
    uint64_t number = 0;
    owned_fd space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (space >= 0 && ioctl(space, NS_GET_MNTNS_ID, &number) < 0) number = 0;
    return number;
}

/* A new mount namespace that the pod's can pin. The kernel binds only a namespace with a higher number than that of who binds, against
   loops, and Linux 6.18 hands numbers out in a block for each CPU: on another CPU than the pod's, a new one may have a lower number
   (EINVAL, seen in one of 30 jobs). So it is made anew on one CPU after the other: that of the pod's has higher ones. */
static int unshare_pinnable(void) {
    uint64_t outer = space_number();
    if (unshare(CLONE_NEWNS) < 0) return root_fail("unshare: %m");
    if (space_number() > outer || outer == 0) return 0;
    cpu_set_t before, one;
    bool is_known = sched_getaffinity(0, sizeof before, &before) == 0, is_higher = false;
    for (int cpu = 0; cpu < CPU_SETSIZE && !is_higher; cpu++) {
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0 && unshare(CLONE_NEWNS) == 0) is_higher = space_number() > outer;
    }
    if (is_known) sched_setaffinity(0, sizeof before, &before);
    for (int tries = 0; tries < 8192 && !is_higher; tries++) /* where no other CPU may be used: till its block of numbers is used up */
        if (unshare(CLONE_NEWNS) == 0) is_higher = space_number() > outer;
    return is_higher ? 0 : root_fail("the kernel gives no mount namespace that can be pinned");
}

static int cover(const char *place, const char *job_tmp, const char *folder) {
    char path[ROOT_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", job_tmp, folder);
    if (mount(path, place, NULL, MS_BIND, NULL) < 0) return root_fail("showing the job's %s: %m", place);
    return mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL) == 0 ? 0 : root_fail("restricting the job's %s: %m", place);
}

/* A folder of the pod's that is open to all, under a tmpfs in its place. */
static int cover_open(const char *place, unsigned long flags) {
    if (mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV | flags, "mode=1777") == 0 || errno == ENOENT) return 0;
    return root_fail("a %s of the job's own: %m", place);
}

/* For a process with a mount namespace of its own. */
static int enslave(void) { return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 ? 0 : root_fail("making the mounts slaves: %m"); }

static int cover_both(const char *job_tmp) {
    if (enslave() < 0) return -1;
    return cover("/tmp", job_tmp, "tmp") < 0 ? -1 : cover("/var/tmp", job_tmp, "var_tmp");
}

/* Where there are no versions: the pod as it is, but for what jobs have of their own. As above, by calls that kernels before 5.12 have, too. */
static int stay(const char *job_tmp) {
    char scratch[ROOT_PATH_MAX + 32];
    if (cover_both(job_tmp) < 0) return -1;
    snprintf(scratch, sizeof scratch, "%s/scratch", job_tmp);
    if (access(scratch, F_OK) == 0 && cover(ROOT_SCRATCH, job_tmp, "scratch") < 0) return -1;
    if (umount2(ROOT_PINS, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT) return root_fail("hiding " ROOT_PINS ": %m");
    return cover_open("/dev/shm", 0) < 0 ? -1 : cover_open("/run/lock", 0);
}

/* What the job has of the node's disk is mounted in its own namespace only, and goes with it. */
static int put_disks(const char *job_tmp) {
    struct root_disks disks;
    if (root_disks_read(ROOT_DISKS_PATH, &disks) < 0) return -1;
    return enslave() < 0 ? -1 : root_disks_put(&disks, job_tmp);
}

static void build(const struct root_conf *conf, const char *version, const char *job_tmp, int answer, int permission) {
    char byte = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare_pinnable() == 0 && put_disks(job_tmp) == 0 && (conf->has_versions ? root_place(conf, version, job_tmp) : stay(job_tmp)) == 0) byte = 1;
    ssize_t done = write(answer, &byte, 1);
    if (byte == 0) done = write(answer, root_reason(), strlen(root_reason()));
    close(answer);
    while (done > 0 && read(permission, &byte, 1) < 0 && errno == EINTR) continue; /* till the pin is made: the parent closes */
    _exit(0);
}

/* Reads what the builder says; its reason becomes ours. */
static int hear(int answer) {
    char text[4096];
    size_t used = 0;
    for (ssize_t count; used < sizeof text - 1; used += (size_t)count) {
        count = read(answer, text + used, sizeof text - 1 - used);
        if (count < 0 && errno == EINTR) count = 0;
        else if (count <= 0) break;
        if (used == 0 && text[0] == 1) return 0;
    }
    text[used] = 0;
    return root_fail("%s", used > 1 ? text + 1 : "what makes the root's mounts ended without a word");
}

static int pin_process(int pins, pid_t process, const char *name) {
    char from[64], to[64];
    owned_fd file = openat(pins, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return root_fail(ROOT_PINS "/%s: %m", name);
    snprintf(from, sizeof from, "/proc/%d/ns/mnt", (int)process);
    snprintf(to, sizeof to, ROOT_PINS "/%s", name);
    return mount(from, to, NULL, MS_BIND, NULL) == 0 ? 0 : root_fail("pinning the job's namespace: %m");
}

static int make_pipe(int *from, int *to) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    *from = ends[0];
    *to = ends[1];
    return 0;
}

static int make_space(const struct root_conf *conf, const char *version, int pins, const char *name) {
    char job_tmp[ROOT_PATH_MAX + 20];
    snprintf(job_tmp, sizeof job_tmp, "%s/%s", conf->tmp, name);
    owned_fd answer = -1, to_answer = -1, permission = -1, to_permit = -1;
    int status;
    if (make_tmp(conf, name) < 0) return -1;
    if (make_pipe(&answer, &to_answer) < 0 || make_pipe(&permission, &to_permit) < 0) return root_fail("pipe: %m");
    pid_t child = fork();
    if (child == 0) {
        root_close_now(&answer);
        root_close_now(&to_permit);
        build(conf, version, job_tmp, to_answer, permission);
    }
    int result = child < 0 ? root_fail("fork: %m") : 0;
    root_close_now(&to_answer);
    root_close_now(&permission);
    if (result == 0) result = hear(answer);
    if (result == 0) result = pin_process(pins, child, name);
    root_close_now(&answer);
    root_close_now(&to_permit);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return result;
}

static int decide_and_make(const struct root_conf *conf, uint32_t job, const char *wanted, int pins, const char *name, int lock, root_version version) {
    *version = 0;
    owned_fd shared = conf->has_versions ? root_shared_open(conf->shared) : -1;
    if (conf->has_versions && (shared < 0 || root_version_of_job(shared, job, wanted, version) < 0)) return -1;
    if (make_space(conf, version, pins, name) < 0) return -1;
    size_t length = strlen(version);
    if (ftruncate(lock, 0) < 0 || pwrite(lock, version, length, 0) != (ssize_t)length) return root_fail("noting the job's version: %m");
    return open_pin(pins, name);
}

/* Of a job with a pin, from the file of its lock. */
static void read_version(int lock, root_version version) {
    ssize_t length = pread(lock, version, ROOT_VERSION_MAX, 0);
    version[length < 0 ? 0 : length] = 0;
}

int root_job_open(const struct root_conf *conf, uint32_t job, const char *wanted, root_version version) {
    if (wanted && !conf->has_versions) return root_fail("--root-version=%s: this cluster has no versioned root", wanted);
    job_name name;
    snprintf(name, sizeof name, "%u", job);
    owned_fd pins = open_pins();
    owned_fd lock = pins < 0 ? -1 : lock_job(pins, name, true);
    if (lock < 0) return -1;
    owned_fd space = open_pin(pins, name);
    if (space < 0) return decide_and_make(conf, job, wanted, pins, name, lock, version);
    read_version(lock, version);
    if (wanted && strcmp(wanted, version) != 0)
        return root_fail("job %u runs in version %s of the root, not in %s: a version is chosen when a job is submitted", job, version, wanted);
    return root_hand_over(&space);
}

int root_job_find(uint32_t job, root_version version) {
    job_name name;
    char file[32];
    snprintf(name, sizeof name, "%u", job);
    snprintf(file, sizeof file, "%s.lock", name);
    owned_fd pins = open_pins();
    owned_fd lock = pins < 0 ? -1 : lock_job(pins, name, true);
    if (lock < 0) return -1;
    owned_fd space = open_pin(pins, name);
    if (space < 0) {
        unlinkat(pins, file, 0);
        return root_fail("job %u has no root on this node: it has ended, or it runs outside", job);
    }
    read_version(lock, version);
    return root_hand_over(&space);
}

/* The folder's place is in the tmpfs that stands for slurmd's spool; elsewhere it would be made in the shared tree. Takes the tree over. */
static int show_folder(int given, const char *folder) {
    owned_fd tree = given;
    char above[ROOT_PATH_MAX];
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    struct statfs found;
    if (statfs(above, &found) < 0 || found.f_type != TMPFS_MAGIC)
        return root_fail("the job's script is in %s, so spool= of the settings must be %s", folder, above);
    owned_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    owned_fd target = root < 0 ? -1 : root_target(root, folder, false);
    return target >= 0 && root_attach(root_hand_over(&tree), target) == 0 ? 0 : root_fail("showing the job's script in %s: %m", folder);
}

static int cut_to_folder(const char *script, char folder[ROOT_PATH_MAX]) {
    snprintf(folder, ROOT_PATH_MAX, "%.*s", (int)strcspn(script, "\n"), script);
    char *last = strrchr(folder, '/');
    if (strcmp(folder, script) != 0 || folder[0] != '/' || last == strchr(folder, '/')) return root_fail("no path of a job's script: %.300s", script);
    *last = 0;
    return 0;
}

int root_job_join(int space, const char *script) {
    char folder[ROOT_PATH_MAX] = "";
    owned_fd tree = -1;
    if (script) {
        if (cut_to_folder(script, folder) < 0) return -1;
        tree = root_clone(folder, false);
        if (tree < 0 || root_restrict(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) return root_fail("the job's script %s: %m", script);
    }
    if (setns(space, CLONE_NEWNS) < 0 || chdir("/") < 0) return root_fail("joining the job's namespace: %m");
    if (tree < 0) return 0;
    if (access(script, F_OK) == 0) return 0;
    mode_t mask = umask(022);
    int result = show_folder(root_hand_over(&tree), folder);
    umask(mask);
    return result;
}

/* A file of --output there would stay on the node after the job, seen and counted by nobody. */
static int close_memory(void) { return cover_open("/dev/shm", MS_RDONLY) < 0 ? -1 : cover_open("/run/lock", MS_RDONLY); }

/* Copies of the mounts at these places of another namespace, for the calling thread, whose own `back` is. -1 in place of what is none. */
static int clone_there(int space, int back, const char *const places[], int trees[], size_t count) {
    owned_fd folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return root_fail("the step's folder: %m");
    if (setns(space, CLONE_NEWNS) < 0) return root_fail("joining the job's namespace: %m");
    for (size_t i = 0; i < count; i++) trees[i] = root_clone(places[i], true);
    if (setns(back, CLONE_NEWNS) < 0 || fchdir(folder) < 0) return root_fail("leaving the job's namespace: %m");
    return 0;
}

/* Takes the tree over. */
static int cover_with(int given, const char *place) {
    owned_fd tree = given;
    if (tree < 0) return root_fail("the job has no %s", place);
    if (move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0) return root_fail("showing the job's %s: %m", place);
    return mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL) == 0 ? 0 : root_fail("restricting the job's %s: %m", place);
}

/* The same where the job has disks, which are mounted in its own namespace only. */
static int cover_with_disks(int space, const struct root_disks *disks) {
    static const char *const places[] = {"/tmp", "/var/tmp", ROOT_SCRATCH};
    size_t count = disks->scratch_mib ? 3 : 2;
    int trees[3] = {-1, -1, -1}, result = 0;
    owned_fd back = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (back < 0) return root_fail("the step's namespace: %m");
    if (enslave() < 0 || clone_there(space, back, places, trees, count) < 0) result = -1;
    for (size_t i = 0; i < count; i++) {
        if (result == 0) result = cover_with(root_hand_over(&trees[i]), places[i]);
        else root_close_now(&trees[i]);
    }
    return result;
}

int root_step_cover(const struct root_conf *conf, uint32_t job, int space) {
    char job_tmp[ROOT_PATH_MAX + 20];
    struct root_disks disks;
    snprintf(job_tmp, sizeof job_tmp, "%s/%u", conf->tmp, job);
    if (root_disks_read(ROOT_DISKS_PATH, &disks) < 0) return -1;
    if (unshare(CLONE_NEWNS) < 0) return root_fail("unshare: %m");
    bool has_disks = disks.tmp_mib || disks.scratch_mib;
    return (has_disks ? cover_with_disks(space, &disks) : cover_both(job_tmp)) < 0 ? -1 : close_memory();
}

int root_step_refuse(void) {
    if (unshare(CLONE_NEWNS) < 0) return root_fail("unshare: %m");
    if (enslave() < 0 || cover_open("/tmp", 0) < 0 || cover_open("/var/tmp", 0) < 0) return -1;
    return close_memory();
}

/* With the job's lock held: what this node has of it. */
static int remove_job(const struct root_conf *conf, int pins, const char *name, uid_t user) {
    char path[64], file[32];
    snprintf(path, sizeof path, ROOT_PINS "/%s", name);
    snprintf(file, sizeof file, "%s.lock", name);
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) continue;
    int result = unlinkat(pins, name, 0) < 0 && errno != ENOENT ? root_fail("%s: %m", path) : 0;
    owned_fd top = open(conf->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top >= 0 && root_gone_put(top, user, top, name) < 0) result = -1;
    unlinkat(pins, file, 0);
    return result;
}

static bool is_job_name(const char *text) { return strspn(text, "0123456789") == strlen(text) && strlen(text) < sizeof(job_name); }

int root_job_close(const struct root_conf *conf, uint32_t job, uid_t user) {
    job_name name;
    snprintf(name, sizeof name, "%u", job);
    owned_fd pins = open_pins();
    owned_fd lock = pins < 0 ? -1 : lock_job(pins, name, true);
    return lock < 0 ? -1 : remove_job(conf, pins, name, user);
}

int root_jobs_sweep(const struct root_conf *conf) {
    owned_fd pins = open_pins(), made = pins < 0 ? -1 : make_path(conf->tmp);
    owned_fd gone = made < 0 ? -1 : root_gone_open(made);
    owned_folder top = gone < 0 ? NULL : opendir(conf->tmp);
    for (const struct dirent *entry; top && (entry = readdir(top));) {
        if (!is_job_name(entry->d_name)) continue;
        owned_fd lock = lock_job(pins, entry->d_name, false);
        owned_fd pin = lock < 0 ? -1 : open_pin(pins, entry->d_name);
        if (lock >= 0 && pin < 0) remove_job(conf, pins, entry->d_name, 0);
    }
    return gone < 0 ? -1 : 0;
}

int root_session_enter(const struct root_conf *conf, root_version version) {
    owned_fd shared = make_run() < 0 ? -1 : root_shared_open(conf->shared);
    if (shared < 0 || root_version_current(shared, version) < 0) return -1;
    if (unshare(CLONE_NEWNS) < 0) return root_fail("unshare: %m");
    return root_place(conf, version, NULL);
}
