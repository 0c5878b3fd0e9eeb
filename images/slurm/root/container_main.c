/* /usr/lib/slipway/container: makes a step's container on a node, and stays in it until the node's tasks have joined. Runs as the job's user, in the job's
   root and in the step's cgroup; it has no other rights than a program of the user's own.

   Arguments are key=value words. On descriptor 3 it writes one byte when tasks can join. What goes wrong is one line on stderr. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "container_words.h"
#include "reason.h"

enum { READY = 3, ROOM = 4 };

static bool has_room; /* whether slurmstepd answers there, as one that is older does not */

static struct {
    const char *base, *state, *step, *node, *image, *record, *home, *passwd, *group, *script, *workdir, *registry, *mounts, *tasks, *save;
    const char *cache; /* for roots whose pulls keep a bound of their own, as this one's do not */
    bool remap, readonly;
} given;

static void __attribute__((noreturn, format(printf, 1, 2))) stop(const char *format, ...) {
    char text[8192];
    int failure = errno;
    va_list more;
    va_start(more, format);
    errno = failure;
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    dprintf(2, "slipway: %s: %s\n", given.node ? given.node : "container", text);
    exit(1);
}

static void read_arguments(int count, char **words) {
    struct {
        const char *key;
        const char **into;
    } const keys[] = {{"base", &given.base},       {"state", &given.state},   {"step", &given.step},       {"node", &given.node},
                      {"image", &given.image},     {"record", &given.record}, {"home", &given.home},       {"passwd", &given.passwd},
                      {"group", &given.group},     {"script", &given.script}, {"workdir", &given.workdir}, {"registry", &given.registry},
                      {"cache", &given.cache},     {"mounts", &given.mounts}, {"tasks", &given.tasks},     {"save", &given.save}};
    for (int i = 1; i < count; i++) {
        bool is_known = false;
        size_t length = strcspn(words[i], "=");
        if (strcmp(words[i], "remap") == 0) is_known = given.remap = true;
        if (strcmp(words[i], "readonly") == 0) is_known = given.readonly = true;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (strlen(keys[k].key) != length || strncmp(words[i], keys[k].key, length) != 0 || words[i][length] == 0) continue;
            *keys[k].into = words[i] + length + 1;
            is_known = true;
        }
        if (!is_known) stop("unknown argument %.100s", words[i]);
    }
    if (!given.base || !given.state || !given.step || !given.node) stop("needs base=, state=, step= and node=");
}

static bool read_text(int folder, const char *name, char *into, size_t room) {
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, into, room - 1);
    if (file >= 0) close(file);
    into[length < 0 ? 0 : length] = 0;
    into[strcspn(into, "\n")] = 0;
    return length > 0;
}

static void write_text(int folder, const char *name, const char *text) {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) stop("%s/%s: %m", given.state, name);
    close(file);
}

static bool is_id(const char *text) { return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64; }

/* Runs the program that pulls, whose last word on stdout is the image's id. */
static void pull(char id[80]) {
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) stop("pipe: %m");
    pid_t child = fork();
    if (child < 0) stop("fork: %m");
    if (child == 0) {
        dup2(ends[1], 1);
        close(READY);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char *const words[] = {"python3", "-IS", "-c",
                               "import sys; sys.path.insert(0, '/usr/lib/slipway'); from containers.pull import main; sys.exit(main(*sys.argv[1:]))",
                               (char *)given.base, (char *)given.record, (char *)given.image, (char *)(given.registry ? given.registry : ""),
                               (char *)given.node, (char *)(has_room ? "4" : ""), NULL};
        execvp("/usr/bin/python3", words);
        stop("containers need python3 in the job's root: %m");
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; used < 79 && ((got = read(ends[0], id + used, 79 - used)) > 0 || (got < 0 && errno == EINTR));) used += got > 0 ? (size_t)got : 0;
    id[used] = 0;
    id[strcspn(id, "\n")] = 0;
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && is_id(id)) return;
    if (WIFSIGNALED(status)) stop("pulling %s was ended by signal %d", given.image, WTERMSIG(status));
    exit(1); /* it has said why */
}

/* Keeps the image from being evicted while this process lives; from then on it is the file `image` of the job's container that does. False where it
   is not there, or not whole. */
static bool hold_image(const char *id) {
    char path[CONTAINER_PATH_MAX];
    snprintf(path, sizeof path, "%s/images/%s.lock", given.base, id);
    int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_SH) < 0) return false;
    snprintf(path, sizeof path, "%s/images/%s/rootfs", given.base, id);
    if (access(path, F_OK) < 0) {
        close(lock);
        return false;
    }
    snprintf(path, sizeof path, "%s/images/%s/used", given.base, id);
    int used = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (used >= 0) {
        futimens(used, NULL);
        close(used);
    }
    return true; /* the lock stays open */
}

/* The job's own word on the reference, from an earlier step: no program is started and no network is used. */
static bool read_record(char id[80]) {
    char text[CONTAINER_IMAGE_MAX + 100];
    FILE *file = fopen(given.record, "re");
    bool is_ours = file && fgets(text, sizeof text, file) && strlen(text) == strlen(given.image) + 1 && strncmp(text, given.image, strlen(given.image)) == 0;
    if (is_ours) is_ours = fgets(id, 80, file) != NULL;
    if (file) fclose(file);
    if (is_ours) id[strcspn(id, "\n")] = 0;
    return is_ours && is_id(id);
}

static void find_image(int state, char id[80]) {
    if (read_text(state, "image", id, 80) && is_id(id) && hold_image(id)) return; /* a named container of an earlier step */
    if (!given.image) stop("no container of this job has that name on this node: give --container-image as well");
    if (read_record(id) && hold_image(id)) {
        write_text(state, "image", id);
        return;
    }
    for (int tries = 0; tries < 3; tries++) {
        pull(id);
        if (hold_image(id)) { /* else it was evicted at this moment */
            write_text(state, "image", id);
            return;
        }
    }
    stop("%s was evicted from this node's cache each time that it was pulled: the cache is too small", given.image);
}

static void write_map(const char *file, unsigned inside, unsigned outside) {
    char text[64];
    int length = snprintf(text, sizeof text, "%u %u 1\n", inside, outside), map = open(file, O_WRONLY | O_CLOEXEC);
    if (map < 0 || write(map, text, (size_t)length) != length) stop("%s: %m", file);
    close(map);
}

static void make_spaces(void) {
    uid_t user = getuid();
    gid_t group = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        stop("this node gives users no user namespaces, which containers need (%m): see user.max_user_namespaces and, on Ubuntu, "
             "kernel.apparmor_restrict_unprivileged_userns");
    int deny = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    if (deny < 0 || write(deny, "deny", 4) != 4) stop("/proc/self/setgroups: %m");
    close(deny);
    write_map("/proc/self/uid_map", given.remap ? 0 : user, user);
    write_map("/proc/self/gid_map", given.remap ? 0 : group, group);
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) stop("making the mounts slaves: %m");
}

static int make_folder(const char *name) {
    char path[CONTAINER_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", given.state, name);
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

static int mount_image(const char *id) {
    static char layers[4 * CONTAINER_PATH_MAX], merged[CONTAINER_PATH_MAX];
    if (make_folder("upper") < 0 || make_folder("work") < 0 || make_folder("merged") < 0) stop("%s: %m", given.state);
    snprintf(merged, sizeof merged, "%s/merged", given.state);
    snprintf(layers, sizeof layers, "lowerdir=%s/images/%s/rootfs,upperdir=%s/upper,workdir=%s/work,userxattr", given.base, id, given.state, given.state);
    if (mount("overlay", merged, "overlay", MS_NODEV | MS_NOSUID, layers) < 0)
        stop("mounting the image: %m (%s has to be on ext4, XFS or a tmpfs of Linux 5.11 or later)", given.base);
    int root = open(merged, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) stop("%s: %m", merged);
    return root;
}

/* Paths in the image are looked up as if the image were `/`: its links lead nowhere else. */
static int open_inside(int root, const char *path, uint64_t flags) {
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* The folder that a path is in, made where it is missing; `*name` is the last part. */
static int open_above(int root, const char *path, const char **name) {
    char part[CONTAINER_PATH_MAX];
    const char *end = path;
    int folder = open_inside(root, "/", O_PATH | O_DIRECTORY);
    for (;;) {
        end += strspn(end, "/");
        size_t length = strcspn(end, "/");
        if (end[length + strspn(end + length, "/")] == 0) break;
        snprintf(part, sizeof part, "%.*s", (int)(end + length - path), path);
        int next = open_inside(root, part, O_PATH | O_DIRECTORY);
        if (next < 0 && errno == ENOENT && folder >= 0) {
            char last[256];
            snprintf(last, sizeof last, "%.*s", (int)length, end);
            if (mkdirat(folder, last, 0755) == 0 || errno == EEXIST) next = open_inside(root, part, O_PATH | O_DIRECTORY);
        }
        if (folder >= 0) close(folder);
        if (next < 0) return -1;
        folder = next;
        end += length;
    }
    *name = end;
    return folder;
}

/* Where something can be mounted: made where it is missing, and in place of a link that leads nowhere or an object of the other kind when `replaces`. */
static int make_target(int root, const char *path, bool is_folder, bool replaces) {
    int target = open_inside(root, path, O_PATH | (is_folder ? O_DIRECTORY : 0));
    struct stat found;
    if (target >= 0 && (fstat(target, &found) < 0 || S_ISDIR(found.st_mode) != is_folder)) {
        close(target);
        target = -1;
        errno = is_folder ? ENOTDIR : EISDIR;
    }
    if (target >= 0) return target;
    const char *name;
    char last[256];
    int folder = open_above(root, path, &name);
    if (folder < 0) return -1;
    size_t length = strcspn(name, "/");
    if (length == 0 || length >= sizeof last) {
        errno = EINVAL;
        return -1;
    }
    snprintf(last, sizeof last, "%.*s", (int)length, name);
    bool exists = fstatat(folder, last, &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && replaces && !S_ISDIR(found.st_mode)) exists = unlinkat(folder, last, 0) < 0;
    int made = -1;
    if (is_folder && (mkdirat(folder, last, 0755) == 0 || errno == EEXIST)) made = openat(folder, last, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!is_folder) {
        int file = openat(folder, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (file >= 0) close(file);
        if (file >= 0 || errno == EEXIST) made = openat(folder, last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (made >= 0 && fstat(made, &found) == 0 && !S_ISREG(found.st_mode)) {
            close(made);
            made = -1;
            errno = EISDIR;
        }
    }
    close(folder);
    return made;
}

static void bind_path(int root, const char *source, const char *target, struct mount_attr wanted, bool replaces, const char *flag) {
    struct stat found;
    int tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0 || fstat(tree, &found) < 0) stop("%s%s: %m", flag, source);
    int place = make_target(root, target, S_ISDIR(found.st_mode), replaces);
    if (place < 0) stop("%s%s: the container has no place for it at %s: %m", flag, source, target);
    bool has_wish = wanted.attr_set || wanted.propagation;
    if (has_wish && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted) < 0) stop("%s%s: read-only or private: %m", flag, source);
    if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) stop("%s%s: mounting it at %s: %m", flag, source, target);
    close(place);
    close(tree);
}

/* A file of the container, made anew: a link of the image's is not followed. */
static void replace_file(int root, const char *path, const char *text, size_t length) {
    const char *name;
    int folder = open_above(root, path, &name);
    if (folder < 0 || (unlinkat(folder, name, 0) < 0 && errno != ENOENT)) stop("%s of the container: %m", path);
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 || write(file, text, length) != (ssize_t)length) stop("%s of the container: %m", path);
    close(file);
    close(folder);
}

/* The user's own line in the image's /etc/passwd and /etc/group. */
static void add_line(int root, const char *path, const char *line, unsigned number) {
    static char text[1 << 20];
    char field[32];
    int file = open_inside(root, path, O_RDONLY | O_NONBLOCK);
    size_t used = 0;
    if (file >= 0) {
        for (ssize_t got; used < sizeof text - 4096 && (got = read(file, text + used, sizeof text - 4096 - used)) > 0;) used += (size_t)got;
        close(file);
    }
    text[used] = 0;
    snprintf(field, sizeof field, ":%u:", number);
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        const char *colon = memchr(at, ':', strcspn(at, "\n"));
        colon = colon ? memchr(colon + 1, ':', strcspn(colon + 1, "\n")) : NULL;
        if (colon && (strncmp(colon, field, strlen(field)) == 0)) return;
    }
    if (used && text[used - 1] != '\n') text[used++] = '\n';
    used += (size_t)snprintf(text + used, 4095, "%s\n", line);
    replace_file(root, path, text, used);
}

/* apt would change to its own user _apt, look whether it did, and give up: the container has one user. */
static void spare_apt_a_user(int root) {
    static const char setting[] = "APT::Sandbox::User \"root\";\n";
    int folder = open_inside(root, "/etc/apt/apt.conf.d", O_PATH | O_DIRECTORY);
    if (folder < 0) return;
    close(folder);
    replace_file(root, "/etc/apt/apt.conf.d/50slipway", setting, sizeof setting - 1);
}

static void fill(int root) {
    struct mount_attr as_it_is = {0}, read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    static const char *const folders[] = {"/proc", "/sys", "/dev", "/tmp"};
    static const char *const files[] = {"/etc/hosts", "/etc/resolv.conf"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) bind_path(root, folders[i], folders[i], as_it_is, true, "");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(files[i], F_OK) == 0) bind_path(root, files[i], files[i], as_it_is, true, "");
    struct statx found;
    bool has_scratch = statx(AT_FDCWD, "/scratch", 0, STATX_TYPE, &found) == 0 && (found.stx_attributes & STATX_ATTR_MOUNT_ROOT);
    if (has_scratch) bind_path(root, "/scratch", "/scratch", as_it_is, true, "");
    if (access("/run/nvidia", F_OK) == 0) bind_path(root, "/run/nvidia", "/run/nvidia", read_only, true, "");
    if (given.passwd && !given.remap) add_line(root, "/etc/passwd", given.passwd, getuid());
    if (given.group && !given.remap) add_line(root, "/etc/group", given.group, getgid());
    if (given.remap) spare_apt_a_user(root);
    if (given.script) bind_path(root, given.script, given.script, read_only, true, "the job's script: ");
    if (given.home) bind_path(root, given.home, given.home, as_it_is, true, "--container-mount-home: ");
    struct container_mount mount;
    const char *rest = given.mounts ? given.mounts : "";
    int result;
    while ((result = container_next_mount(&rest, &mount)) > 0) {
        struct mount_attr wanted = {.attr_set = mount.is_read_only ? MOUNT_ATTR_RDONLY : 0, .propagation = mount.is_private ? MS_PRIVATE : 0};
        bind_path(root, mount.source, mount.target, wanted, false, "--container-mounts: ");
    }
    if (result < 0) stop("%s", root_reason());
    if (given.workdir) {
        int folder = make_target(root, given.workdir, true, false);
        if (folder >= 0) close(folder);
    }
    if (given.readonly && mount_setattr(root, "", AT_EMPTY_PATH, &read_only, sizeof read_only) < 0) stop("making the container read-only: %m");
}

static void pivot(int root) {
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) stop("pivot_root: %m");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) stop("detaching the job's root: %m");
}

/* A file that tasks write their numbers into, as they join. */
static int open_desk(int state) {
    char name[160];
    snprintf(name, sizeof name, "tasks-%.100s", given.step);
    unlinkat(state, name, 0);
    int desk = mkfifoat(state, name, 0600) < 0 ? -1 : openat(state, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (desk < 0) stop("%s/%s: %m", given.state, name);
    return desk;
}

/* Until all of the node's tasks have come. It must not live as long as they do: Slurm waits a second where it finds a process after the tasks' end. */
static void stay(int desk) {
    long expected = given.tasks ? strtol(given.tasks, NULL, 10) : 1;
    struct pollfd wait = {.fd = desk, .events = POLLIN};
    for (char byte; expected > 0;) {
        if (read(desk, &byte, 1) == 1) expected--;
        else if (poll(&wait, 1, -1) < 0 && errno != EINTR) return;
    }
}

/* What the image says beside its files, as enroot has it in its squashfs files: variables in /etc/environment, the folder in /etc/rc. */
static void describe(int root, const char *id) {
    static char text[1 << 20], lines[sizeof text], rc[3 * CONTAINER_PATH_MAX];
    char path[CONTAINER_PATH_MAX], folder[CONTAINER_PATH_MAX] = "";
    snprintf(path, sizeof path, "%s/images/%s/env", given.base, id);
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    size_t used = 0;
    if (file >= 0) close(file);
    for (const char *word = text; length > 0 && word < text + length; word += strlen(word) + 1)
        if (!strchr(word, '\n')) used += (size_t)snprintf(lines + used, sizeof lines - used, "%s\n", word);
    replace_file(root, "/etc/environment", lines, used);
    snprintf(path, sizeof path, "%s/images/%s", given.base, id);
    int image = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0 || !read_text(image, "workdir", folder, sizeof folder) || strpbrk(folder, "\"$`\\")) strcpy(folder, "/");
    int size = snprintf(rc, sizeof rc, "mkdir -p \"%s\" 2> /dev/null\ncd \"%s\" && unset OLDPWD || exit 1\nexec \"$@\"\n", folder, folder);
    replace_file(root, "/etc/rc", rc, (size_t)size);
}

/* Writes the container into a squashfs file, which appears whole or not at all. Its tasks have ended, so its files are mounted once more. */
static int save(int state) {
    char id[80], part[CONTAINER_PATH_MAX + 32], merged[CONTAINER_PATH_MAX];
    int status = 0;
    if (!read_text(state, "image", id, sizeof id) || !is_id(id)) stop("--container-save: the container has no image");
    make_spaces();
    int root = mount_image(id);
    describe(root, id);
    close(root);
    snprintf(merged, sizeof merged, "%s/merged", given.state);
    snprintf(part, sizeof part, "%s.%d.part", given.save, (int)getpid());
    pid_t child = fork();
    if (child < 0) stop("fork: %m");
    if (child == 0) {
        char *const words[] = {"mksquashfs", merged, part, "-noappend", "-all-root", "-no-progress", "-quiet", "-no-xattrs", "-processors", "2", NULL};
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execv("/usr/bin/mksquashfs", words);
        stop("--container-save needs mksquashfs in the job's root (%m): an administrator adds squashfs-tools to the root's image");
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && rename(part, given.save) == 0) return 0;
    bool has_spoken = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    if (!has_spoken) fprintf(stderr, "slipway: %s: --container-save=%s: %s\n", given.node, given.save, strerror(errno));
    unlink(part);
    return 1;
}

int main(int count, char **words) {
    char id[80] = "", member[64];
    struct stat space;
    umask(022);
    has_room = fstat(ROOM, &space) == 0 && S_ISSOCK(space.st_mode);
    read_arguments(count, words);
    int state = open(given.state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state < 0) stop("%s: %m", given.state);
    if (given.save) return save(state);
    find_image(state, id);
    if (has_room) close(ROOM);
    make_spaces();
    int root = mount_image(id);
    fill(root);
    pivot(root);
    close(root);
    int desk = open_desk(state);
    char holder[160];
    snprintf(holder, sizeof holder, "holder-%.100s", given.step);
    if (fstatat(AT_FDCWD, "/proc/self/ns/mnt", &space, 0) < 0) stop("/proc: %m");
    snprintf(member, sizeof member, "%d %llu\n", (int)getpid(), (unsigned long long)space.st_ino);
    write_text(state, "members", member);
    write_text(state, holder, member);
    close(state);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    if (null > READY) close(null);
    prctl(PR_SET_NAME, "slipway-holder");
    if (write(READY, "1", 1) != 1) return 1;
    close(READY);
    stay(desk);
    return 0;
}
