#include "container_fill.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container_given.h"
#include "container_inside.h"
#include "container_slurm.h"
#include "container_words.h"
#include "reason.h"

static void bind_path(int root, const char *source, const char *target, struct mount_attr wanted, bool replaces, const char *flag) {
    struct stat found;
    int tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0 || fstat(tree, &found) < 0) container_stop("%s%s: %m", flag, source);
    int place = container_make_target(root, target, S_ISDIR(found.st_mode), replaces);
    if (place < 0) container_stop("%s%s: the container has no place for it at %s: %m", flag, source, target);
    bool has_wish = wanted.attr_set || wanted.propagation;
    if (has_wish && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted) < 0)
        container_stop("%s%s: read-only or private: %m", flag, source);
    if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        container_stop("%s%s: mounting it at %s: %m", flag, source, target);
    close(place);
    close(tree);
}

/* The user's own line in the image's /etc/passwd and /etc/group. */
static void add_line(int root, const char *path, const char *line, unsigned number) {
    static char text[1 << 20];
    char field[32];
    int file = container_open_inside(root, path, O_RDONLY | O_NONBLOCK);
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
    container_replace_file(root, path, text, used);
}

/* apt would change to its own user _apt, look whether it did, and give up: the container has one user. */
static void spare_apt_a_user(int root) {
    static const char setting[] = "APT::Sandbox::User \"root\";\n";
    int folder = container_open_inside(root, "/etc/apt/apt.conf.d", O_PATH | O_DIRECTORY);
    if (folder < 0) return;
    close(folder);
    container_replace_file(root, "/etc/apt/apt.conf.d/50slipway", setting, sizeof setting - 1);
}

void container_fill(int root) {
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
    if (result < 0) container_stop("%s", root_reason());
    if (given.workdir) {
        int folder = container_make_target(root, given.workdir, true, false);
        if (folder >= 0) close(folder);
    }
    if (given.slurm) container_fill_slurm(root);
    if (given.readonly && mount_setattr(root, "", AT_EMPTY_PATH, &read_only, sizeof read_only) < 0) container_stop("making the container read-only: %m");
}
