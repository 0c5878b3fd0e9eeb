#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf.h"
#include "container_evict.h"
#include "container_room.h"
#include "container_words.h"
#include "driver.h"
#include "mpi.h"
#include "owned.h"
#include "reason.h"

enum { IMAGE = 1, NAME, SAVE, MOUNTS, WORKDIR, HOME, NO_HOME, REMAP, NO_REMAP, WRITABLE, READONLY, ENV, ENTRYPOINT, NO_ENTRYPOINT };

static struct {
    const char *image, *name, *save, *mounts, *workdir, *env;
    enum container_use use;
    bool home, remap, readonly, any;
} asked;

static const char *cache_mib = "", *registry = "";

int root_container_setting(const char *argument) {
    static const char cache[] = "cache=", host[] = "registry=";
    if (strncmp(argument, cache, sizeof cache - 1) == 0) {
        cache_mib = argument + sizeof cache - 1;
        return *cache_mib && strlen(cache_mib) <= 9 && strspn(cache_mib, "0123456789") == strlen(cache_mib) ? 1 : -1;
    }
    if (strncmp(argument, host, sizeof host - 1) != 0) return 0;
    registry = argument + sizeof host - 1;
    return *registry ? 1 : -1;
}

/* Slurm's text lives on only in some contexts. */
static int keep(const char **into, const char *text, int checked) {
    if (checked < 0) return -1;
    *into = strdup(text);
    return *into ? 0 : root_fail("out of memory");
}

static int take_name(const char *text) {
    static char name[CONTAINER_NAME_MAX + 1];
    int read = container_read_name(text, name, &asked.use);
    if (read == 0) asked.name = name;
    return read;
}

static int take(int which, const char *text) {
    asked.any = true;
    switch (which) {
    case IMAGE: return keep(&asked.image, text, container_check_image(text));
    case NAME: return take_name(text);
    case SAVE: return keep(&asked.save, text, container_check_file("container-save", text));
    case MOUNTS: return keep(&asked.mounts, text, container_check_mounts(text));
    case WORKDIR: return keep(&asked.workdir, text, container_check_path("container-workdir", text));
    case ENV: return keep(&asked.env, text, container_check_env(text));
    case HOME:
    case NO_HOME: asked.home = which == HOME; return 0;
    case REMAP:
    case NO_REMAP: asked.remap = which == REMAP; return 0;
    case NO_ENTRYPOINT: return 0;
    case ENTRYPOINT:
        return root_fail("--container-entrypoint: the entrypoint of an image is not run by itself: write it before the program, "
                         "as in `srun --container-image=IMAGE /entrypoint.sh PROGRAM`");
    default: asked.readonly = which == READONLY; return 0;
    }
}

static int take_option(int which, const char *text, int is_remote) {
    root_reason_clear();
    if (take(which, text ? text : "") == 0) return 0;
    if (!is_remote) slurm_error("slipway: %s", root_reason());
    return -1;
}

int root_container_register(spank_t spank) {
    static struct spank_option options[] = {
        {"container-image", "IMAGE", "run in a container of this image: docker://HOST/PATH:TAG, PATH:TAG, /path/image.sqsh, /path/oci-archive.tar", 1, IMAGE,
         take_option},
        {"container-name", "NAME[:auto|create|exec|no_exec]", "name of the container: later steps of the job with this name use it again", 1, NAME, take_option},
        {"container-save", "PATH", "when the step ends, save the container as a squashfs file", 1, SAVE, take_option},
        {"container-mounts", "SRC:DST[:FLAG+...][,...]", "what of the node the container has as well", 1, MOUNTS, take_option},
        {"container-workdir", "PATH", "folder in the container that the program starts in", 1, WORKDIR, take_option},
        {"container-mount-home", NULL, "the container has the home directory", 0, HOME, take_option},
        {"no-container-mount-home", NULL, "the container has no home directory of the cluster (default)", 0, NO_HOME, take_option},
        {"container-remap-root", NULL, "be root in the container, without any right that the user has not", 0, REMAP, take_option},
        {"no-container-remap-root", NULL, "be the user in the container (default)", 0, NO_REMAP, take_option},
        {"container-writable", NULL, "files of the container can be changed (default)", 0, WRITABLE, take_option},
        {"container-readonly", NULL, "files of the container cannot be changed", 0, READONLY, take_option},
        {"container-env", "NAME[,NAME...]", "variables that the job's value is kept of, against the image's", 1, ENV, take_option},
        {"container-entrypoint", NULL, "refused: write the entrypoint before the program", 0, ENTRYPOINT, take_option},
        {"no-container-entrypoint", NULL, "the image's entrypoint is not run (default)", 0, NO_ENTRYPOINT, take_option},
        {"container-entrypoint-log", NULL, "refused, as --container-entrypoint is", 0, ENTRYPOINT, take_option},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        spank_err_t result = spank_option_register(spank, &options[i]);
        if (result != ESPANK_SUCCESS) return result;
    }
    return ESPANK_SUCCESS;
}

bool root_container_wanted(void) { return asked.image || asked.name; }

int root_container_check(void) {
    if (asked.use == CONTAINER_CREATE && !asked.image) return root_fail("--container-name=%s:create needs --container-image as well", asked.name);
    if (!asked.any || root_container_wanted() || getenv("_SLURM_SPANK_OPTION_slipway_container_container_image")) return 0;
    return root_fail("the --container- options say nothing without --container-image or --container-name");
}

static int make_base(void) {
    if (mkdir("/var/spool/slipway", 0755) < 0 && errno != EEXIST) return root_fail("/var/spool/slipway: %m");
    if (mkdir(ROOT_CONTAINERS, 0711) < 0 && errno != EEXIST) return root_fail(ROOT_CONTAINERS ": %m");
    owned_fd base = open(ROOT_CONTAINERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat found;
    if (base < 0 || fstat(base, &found) < 0) return root_fail(ROOT_CONTAINERS ": %m");
    if (found.st_uid != 0) return root_fail(ROOT_CONTAINERS " does not belong to root");
    if ((found.st_mode & 07777) != 0711 && fchmod(base, 0711) < 0) return root_fail(ROOT_CONTAINERS ": %m");
    return root_hand_over(&base);
}

int root_container_open(uid_t user, gid_t group) {
    char name[16];
    struct stat found;
    snprintf(name, sizeof name, "%u", (unsigned)user);
    owned_fd base = make_base();
    if (base < 0) return -1;
    if (user == 0) return 0;
    if (mkdirat(base, name, 0700) < 0 && errno != EEXIST) return root_fail(ROOT_CONTAINERS "/%s: %m", name);
    owned_fd own = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0 || fstat(own, &found) < 0) return root_fail(ROOT_CONTAINERS "/%s: %m", name);
    if (found.st_uid != user && fchown(own, user, group) < 0) return root_fail(ROOT_CONTAINERS "/%s: %m", name);
    return 0;
}

int root_container_close(uid_t user, uint32_t job) {
    owned_fd base = make_base();
    if (base < 0) return -1;
    int result = container_forget_job(base, user, job);
    container_sweep(base, ROOT_PINS);
    return container_evict(base, strtoul(cache_mib, NULL, 10)) < 0 ? -1 : result;
}

int root_container_serve(uid_t user) {
    owned_fd base = make_base();
    return base < 0 ? -1 : container_room_serve(root_hand_over(&base), user, strtoul(cache_mib, NULL, 10));
}

/* The rest runs in a task of the job, as its user. */

static void __attribute__((noreturn)) end(bool speaks) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (speaks && *root_reason()) dprintf(2, "slipway: %s: %s\n", host, root_reason());
    _exit(1);
}

static int open_state(const char *user_folder, uint32_t job, const char *name) {
    char jobs[16];
    snprintf(jobs, sizeof jobs, "%u", job);
    const char *const parts[] = {"jobs", jobs, name};
    owned_fd folder = open(user_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return root_fail("%s: %m", user_folder);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (mkdirat(folder, parts[i], 0700) < 0 && errno != EEXIST) return root_fail("%s/%s: %m", user_folder, parts[i]);
        int next = openat(folder, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) return root_fail("%s/%s: %m", user_folder, parts[i]);
        root_close_now(&folder);
        folder = next;
    }
    return root_hand_over(&folder);
}

static int lock_state(int state) {
    owned_fd lock = openat(state, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) < 0)
        if (errno != EINTR) return root_fail("locking the container: %m");
    return lock < 0 ? root_fail("the container's lock: %m") : root_hand_over(&lock);
}

struct spaces {
    int users, mounts;
};

/* Of a process that is in the container, if it still is: its number may be another's by now. */
static bool open_spaces(pid_t member, unsigned long long number, struct spaces *into) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)member);
    owned_fd mounts = open(path, O_RDONLY | O_CLOEXEC);
    if (mounts < 0 || fstat(mounts, &found) < 0 || found.st_ino != number) return false;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)member);
    owned_fd users = open(path, O_RDONLY | O_CLOEXEC);
    if (users < 0) return false;
    into->users = root_hand_over(&users);
    into->mounts = root_hand_over(&mounts);
    return true;
}

/* Its file lists who has ever been in the container, since it was mounted. */
static bool find_member(int state, struct spaces *into) {
    int file = openat(state, "members", O_RDONLY | O_NOFOLLOW | O_CLOEXEC), member;
    owned_file lines = file < 0 ? NULL : fdopen(file, "r");
    unsigned long long number;
    while (lines && fscanf(lines, "%d %llu", &member, &number) == 2)
        if (member > 0 && open_spaces(member, number, into)) return true;
    return false;
}

static void fill_words(char **words, char *room, size_t left, const char *const *pairs, size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i += 2) {
        if (pairs[i + 1] == NULL) continue;
        int length = snprintf(room, left, "%s%s%s", pairs[i], *pairs[i + 1] ? "=" : "", pairs[i + 1]);
        if (length < 0 || (size_t)length >= left) continue;
        words[at++] = room;
        room += length + 1;
        left -= (size_t)length + 1;
    }
    words[at] = NULL;
}

/* Starts the helper, not as a child of the task: a program that waits for its children must not meet it. It says by one byte that it is ready. */
static int start_helper(char **words, char **environment) {
    int ends[2], status;
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) return root_fail("pipe: %m");
    owned_fd answer = ends[0], to_answer = ends[1];
    pid_t child = fork();
    if (child < 0) return root_fail("fork: %m");
    if (child == 0) {
        if (fork() != 0) _exit(0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        int null = open("/dev/null", O_RDONLY);
        dup2(null, 0);
        int ready = fcntl(to_answer, F_DUPFD, 10), room = fcntl(container_room_end(), F_DUPFD, 10);
        dup2(ready, 3);
        if (room >= 0) dup2(room, ROOT_CONTAINER_ROOM);
        close_range(ROOT_CONTAINER_ROOM + (room >= 0), ~0U, 0);
        execve(ROOT_CONTAINER_HELPER, words, environment);
        dprintf(2, "slipway: this root has no " ROOT_CONTAINER_HELPER ": %s\n", strerror(errno));
        _exit(1);
    }
    root_close_now(&to_answer);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    ssize_t got;
    while ((got = read(answer, &byte, 1)) < 0 && errno == EINTR) continue;
    return got == 1 ? 0 : -1; /* it has said why */
}

static const char *person_line(char *text, size_t room, uid_t user) {
    const struct passwd *found = getpwuid(user);
    if (found == NULL) return NULL;
    int length = snprintf(text, room, "%s:x:%u:%u::%s:/bin/sh", found->pw_name, user, found->pw_gid, found->pw_dir);
    return length > 0 && (size_t)length < room && !strchr(text, '\n') ? text : NULL;
}

static const char *group_line(char *text, size_t room, gid_t group) {
    const struct group *found = getgrgid(group);
    if (found == NULL) return NULL;
    int length = snprintf(text, room, "%s:x:%u:", found->gr_name, group);
    return length > 0 && (size_t)length < room ? text : NULL;
}

static const char *script_folder(spank_t spank, uint32_t step, char folder[ROOT_PATH_MAX]) {
    int count;
    char **words;
    if (step != SLURM_BATCH_SCRIPT || spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count == 0) return NULL;
    if (words[0][0] != '/' || strlen(words[0]) >= ROOT_PATH_MAX) return NULL;
    strcpy(folder, words[0]);
    *strrchr(folder, '/') = 0;
    return *folder ? folder : NULL;
}

/* FNV-1a: names a file, nothing more; the file has the whole reference. */
static unsigned long long hash(const char *text) {
    unsigned long long value = 0xcbf29ce484222325ULL;
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 0x100000001b3ULL;
    return value;
}

struct place {
    char user_folder[64], name[CONTAINER_NAME_MAX + 16], path[256], failed[64], desk[64], step[32];
    uint32_t job, number;
};

static int make(spank_t spank, const struct place *place) {
    static char room[4 * CONTAINER_LIST_MAX], passwd[2048], group[512], script[ROOT_PATH_MAX], record[256], tasks[16], host[256];
    char *words[40] = {"slipway-container"};
    const struct passwd *person = asked.home ? getpwuid(getuid()) : NULL;
    if (asked.home && person == NULL) return root_fail("--container-mount-home: nobody knows this user's home");
    uint32_t count = 1;
    gethostname(host, sizeof host - 1);
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &count) != ESPANK_SUCCESS || count == 0) count = 1;
    snprintf(tasks, sizeof tasks, "%u", count);
    if (asked.image) snprintf(record, sizeof record, "%s/jobs/%u/ref-%016llx", place->user_folder, place->job, hash(asked.image));
    const char *const pairs[] = {
        "base",    place->user_folder,
        "state",   place->path,
        "step",    place->step,
        "node",    host,
        "image",   asked.image,
        "record",  asked.image ? record : NULL,
        "registry", *registry ? registry : NULL,
        "cache",   *cache_mib ? cache_mib : NULL,
        "home",    person ? person->pw_dir : NULL,
        "passwd",  person_line(passwd, sizeof passwd, getuid()),
        "group",   group_line(group, sizeof group, getgid()),
        "script",  script_folder(spank, place->number, script),
        "workdir", asked.workdir,
        "mounts",  asked.mounts,
        "tasks",   tasks,
        "remap",   asked.remap ? "" : NULL,
        "readonly", asked.readonly ? "" : NULL,
    };
    fill_words(words + 1, room, sizeof room, pairs, sizeof pairs / sizeof *pairs);
    char **environment = NULL; /* the job's: its HOME has the logins */
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || environment == NULL) return root_fail("Slurm gives no environment");
    return start_helper(words, environment);
}

static void set_variable(spank_t spank, const char *word) {
    char name[256];
    size_t length = strcspn(word, "=");
    if (word[length] != '=' || length == 0 || length >= sizeof name) return;
    if (container_keeps(word, length)) return;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    static char ignored[131072];
    if (container_list_has(asked.env, word, length) && spank_getenv(spank, name, ignored, sizeof ignored) != ESPANK_ENV_NOEXIST) return;
    spank_setenv(spank, name, word + length + 1, 1);
}

static void add_driver(spank_t spank) {
    static char old[65536], wanted[sizeof old + 64];
    if (access(ROOT_DRIVER_BIN, F_OK) == 0 && spank_getenv(spank, "PATH", old, sizeof old) == ESPANK_SUCCESS) {
        snprintf(wanted, sizeof wanted, ROOT_DRIVER_BIN ":%s", old);
        spank_setenv(spank, "PATH", wanted, 1);
    }
    if (access(ROOT_DRIVER_LIB, F_OK) < 0) return;
    bool has_path = spank_getenv(spank, "LD_LIBRARY_PATH", old, sizeof old) == ESPANK_SUCCESS && *old;
    snprintf(wanted, sizeof wanted, "%s%s" ROOT_DRIVER_LIB, has_path ? old : "", has_path ? ":" : "");
    spank_setenv(spank, "LD_LIBRARY_PATH", wanted, 1);
}

static ssize_t read_whole(int folder, const char *name, char *into, size_t room) {
    owned_fd file = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = 0, got;
    while (file >= 0 && (got = read(file, into + length, room - 1 - (size_t)length)) > 0) length += got;
    into[length] = 0;
    return length;
}

/* What the image says of environment and folder; read before the container is entered, used after. */
struct image {
    char variables[1 << 20], folder[CONTAINER_PATH_MAX];
    ssize_t length;
};

static void read_image(const struct place *place, int state, struct image *image) {
    char id[80], path[256];
    read_whole(state, "image", id, sizeof id);
    id[strcspn(id, "\n")] = 0;
    if (strlen(id) != 64 || strspn(id, "0123456789abcdef") != 64) return;
    snprintf(path, sizeof path, "%s/images/%s", place->user_folder, id);
    owned_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    image->length = read_whole(folder, "env", image->variables, sizeof image->variables);
    read_whole(folder, "workdir", image->folder, sizeof image->folder);
    image->folder[strcspn(image->folder, "\n")] = 0;
}

static void set_environment(spank_t spank, const struct image *image) {
    bool has_path = false;
    for (const char *word = image->variables; word < image->variables + image->length; word += strlen(word) + 1) {
        has_path |= strncmp(word, "PATH=", 5) == 0;
        set_variable(spank, word);
    }
    if (!has_path && !container_list_has(asked.env, "PATH", 4))
        spank_setenv(spank, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    if (asked.name) spank_setenv(spank, "SLIPWAY_CONTAINER_NAME", asked.name, 1);
    add_driver(spank);
}

static int go_to_folder(const struct image *image) {
    if (asked.workdir) return chdir(asked.workdir) == 0 ? 0 : root_fail("--container-workdir=%s: %m", asked.workdir);
    if (*image->folder == 0 || chdir(image->folder) < 0) return chdir("/");
    return 0;
}

static int join(const struct spaces *spaces) {
    if (setns(spaces->users, CLONE_NEWUSER) < 0 || setns(spaces->mounts, CLONE_NEWNS) < 0) return root_fail("entering the container: %m");
    close(spaces->users);
    close(spaces->mounts);
    return 0;
}

/* Of the ids that a container's root can give to files and take itself there is one. Package managers want more: they are told that they got it. */
static int feign_owners(void) {
    static const unsigned feigned[] = {
#ifdef SYS_chown
        SYS_chown, SYS_lchown,
#endif
        SYS_fchown, SYS_fchownat, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid};
    enum { COUNT = sizeof feigned / sizeof *feigned };
#if defined __x86_64__
    const unsigned machine = AUDIT_ARCH_X86_64;
#elif defined __aarch64__
    const unsigned machine = AUDIT_ARCH_AARCH64;
#else
    return 0;
#endif
    struct sock_filter rules[COUNT + 5]; /* read the machine, compare, read the call, compare with each, allow, feign */
    size_t at = 0;
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    rules[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 0, COUNT + 1);
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT; i++) rules[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, feigned[i], (unsigned char)(COUNT - i), 0);
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO);
    struct sock_fprog filter = {.len = (unsigned short)at, .filter = rules};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 ? 0 : root_fail("--container-remap-root: seccomp: %m");
}

/* A path that begins with a dot, from the folder that the job runs in: two steps may run in two. */
static int start_here(const char **path) {
    static char here[ROOT_PATH_MAX];
    char *whole = NULL;
    if (*path == NULL || !container_is_relative(*path)) return 0;
    if (getcwd(here, sizeof here) == NULL || asprintf(&whole, "%s/%s", here, *path) < 0) return root_fail("%s: %m", *path);
    *path = whole;
    return 0;
}

static void find_place(spank_t spank, struct place *place) {
    spank_get_item(spank, S_JOB_ID, &place->job);
    spank_get_item(spank, S_JOB_STEPID, &place->number);
    snprintf(place->step, sizeof place->step, "%u", place->number);
    snprintf(place->user_folder, sizeof place->user_folder, ROOT_CONTAINERS "/%u", (unsigned)getuid());
    snprintf(place->name, sizeof place->name, asked.name ? "name-%s" : "step-%s", asked.name ? asked.name : place->step);
    snprintf(place->path, sizeof place->path, "%s/jobs/%u/%s", place->user_folder, place->job, place->name);
    snprintf(place->desk, sizeof place->desk, "tasks-%s", place->step);
    snprintf(place->failed, sizeof place->failed, "failed-%s", place->step);
}

/* Of the step's tasks on a node the first finds the container as others left it. */
static int check_use(const struct place *place, int state, bool runs) {
    char mark[48];
    snprintf(mark, sizeof mark, "use-%s", place->step);
    owned_fd first = asked.use == CONTAINER_AUTO ? -1 : openat(state, mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (first < 0) return 0;
    if (asked.use == CONTAINER_CREATE && faccessat(state, "image", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return root_fail("--container-name=%s:create: the job has a container of that name: leave out :create to use it", asked.name);
    if (asked.use == CONTAINER_EXEC && !runs)
        return root_fail("--container-name=%s:exec: no step of the job runs in a container of that name: leave out :exec to start one", asked.name);
    if (asked.use == CONTAINER_NO_EXEC && runs)
        return root_fail("--container-name=%s:no_exec: another step runs in it, and only one container can have its files: leave out :no_exec to join it",
                         asked.name);
    return 0;
}

/* With the lock of the container: one task makes it, and when that fails the others neither try again nor say so again. */
static void open_container(spank_t spank, const struct place *place, int state, struct spaces *spaces) {
    if (faccessat(state, place->failed, F_OK, AT_SYMLINK_NOFOLLOW) == 0) end(false);
    bool runs = find_member(state, spaces), may = check_use(place, state, runs) == 0;
    if (may && (runs || (make(spank, place) == 0 && find_member(state, spaces)))) return;
    owned_fd failed = openat(state, place->failed, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    end(true);
}

static volatile pid_t program;

static void pass_on(int number) {
    if (program > 0) kill(program, number);
}

/* Runs the helper once more, for the node's tasks have ended. */
static int save_container(const struct place *place, char **environment) {
    char *words[8] = {"slipway-container"}, host[256] = "";
    static char room[3 * CONTAINER_PATH_MAX];
    int status = -1;
    gethostname(host, sizeof host - 1);
    const char *const pairs[] = {"base", place->user_folder, "state", place->path, "step", place->step, "node", host, "save", asked.save};
    fill_words(words + 1, room, sizeof room, pairs, sizeof pairs / sizeof *pairs);
    pid_t child = fork();
    if (child == 0) {
        execve(ROOT_CONTAINER_HELPER, words, environment);
        _exit(1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

/* --container-save, on the first node of the step: the task's program becomes a child of the task, which saves the container once all of the node's
   tasks have ended, and ends as its program did. Returns in the child only. */
static void stay_to_save(spank_t spank, const struct place *place, int state, int lock, struct spaces *spaces) {
    static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};
    int status = 0, failed = 0, task = 0;
    uint32_t node = 0;
    char **environment = NULL;
    sigset_t none;
    if (asked.save == NULL || spank_get_item(spank, S_JOB_NODEID, &node) != ESPANK_SUCCESS || node != 0) return;
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS) return;
    int running = openat(state, "running", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (running < 0 || flock(running, LOCK_SH) < 0) return;
    if ((program = fork()) == 0) {
        close(running);
        return;
    }
    close(lock); /* the child has it still, as they share one open file, until it has joined */
    close(spaces->users);
    close(spaces->mounts);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) signal(passed[i], pass_on);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    while (program > 0 && waitpid(program, &status, 0) < 0 && errno == EINTR) continue;
    if (task == 0) {
        while (flock(running, LOCK_EX) < 0 && errno == EINTR) continue;
        failed = save_container(place, environment);
    }
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : failed != 0);
}

/* The last of the step's tasks waits for the end of what made the container, a millisecond: a task may be as short, and Slurm waits a second where a
   process outlives the tasks. */
static void see_off(int state, const struct place *place, bool is_last, int come) {
    char name[64], text[32] = "";
    snprintf(name, sizeof name, "holder-%s", place->step);
    owned_fd file = is_last ? openat(state, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    pid_t holder = file >= 0 && read(file, text, sizeof text - 1) > 0 ? (pid_t)atoi(text) : 0;
    owned_fd process = holder > 0 ? (int)syscall(SYS_pidfd_open, holder, 0) : -1;
    struct pollfd wait = {.fd = process, .events = POLLIN};
    if (come >= 0 && write(come, "1", 1) != 1) return;
    if (process >= 0) poll(&wait, 1, 1000);
}

/* Later steps of the job find the container by a task in it, while it runs. What made it waits for each of its step's tasks. */
static void sign_in(spank_t spank, int state, const struct place *place) {
    char text[64];
    struct stat found;
    uint32_t count = 1;
    owned_fd members = openat(state, "members", O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (members >= 0 && stat("/proc/self/ns/mnt", &found) == 0) {
        int length = snprintf(text, sizeof text, "%d %llu\n", (int)getpid(), (unsigned long long)found.st_ino);
        if (write(members, text, (size_t)length) != length) slurm_debug("slipway: the container's list of tasks: %m");
    }
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &count) != ESPANK_SUCCESS || count == 0) count = 1;
    snprintf(text, sizeof text, "come-%s", place->step);
    owned_fd come = openat(state, text, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_last = come >= 0 && write(come, "1", 1) == 1 && fstat(come, &found) == 0 && found.st_size >= (off_t)count;
    owned_fd desk = openat(state, place->desk, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    see_off(state, place, is_last, desk);
}

void root_container_enter(spank_t spank) {
    static struct place place;
    static struct image image;
    root_reason_clear();
    if (start_here(&asked.image) < 0 || start_here(&asked.save) < 0) end(true);
    find_place(spank, &place);
    owned_fd state = open_state(place.user_folder, place.job, place.name);
    owned_fd lock = state < 0 ? -1 : lock_state(state);
    if (lock < 0) end(true);
    struct spaces spaces;
    open_container(spank, &place, state, &spaces);
    read_image(&place, state, &image);
    stay_to_save(spank, &place, state, lock, &spaces);
    if (join(&spaces) < 0) end(true);
    sign_in(spank, state, &place);
    root_close_now(&lock);
    root_close_now(&state);
    set_environment(spank, &image);
    if (go_to_folder(&image) < 0 || (asked.remap && feign_owners() < 0)) end(true);
}
