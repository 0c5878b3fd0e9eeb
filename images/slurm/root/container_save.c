#include "container_save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "container_given.h"
#include "container_inside.h"
#include "container_overlay.h"
#include "container_words.h"

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
    container_replace_file(root, "/etc/environment", lines, used);
    snprintf(path, sizeof path, "%s/images/%s", given.base, id);
    int image = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0 || !container_read_text(image, "workdir", folder, sizeof folder) || strpbrk(folder, "\"$`\\")) strcpy(folder, "/");
    int size = snprintf(rc, sizeof rc, "mkdir -p \"%s\" 2> /dev/null\ncd \"%s\" && unset OLDPWD || exit 1\nexec \"$@\"\n", folder, folder);
    container_replace_file(root, "/etc/rc", rc, (size_t)size);
}

/* In the container, but with the job's root and programs: there is no second mount of the container's files, as other steps may be in it. What else is
   mounted in it is left out. */
static void __attribute__((noreturn)) write_files(const char *id, char *part) {
    struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY};
    int here = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    container_join();
    int root = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (here < 0 || root < 0 || mount_setattr(root, "", AT_EMPTY_PATH, &writable, sizeof writable) < 0) container_stop("--container-save: %m");
    if (fchdir(here) < 0 || chroot(".") < 0) container_stop("--container-save: the job's root: %m");
    describe(root, id);
    if (fchdir(root) < 0) container_stop("--container-save: %m");
    char *const words[] = {"mksquashfs", ".", part, "-noappend", "-all-root", "-no-progress", "-quiet", "-no-xattrs", "-processors", "2", "-mem", "64M", NULL};
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    execv("/usr/bin/mksquashfs", words);
    container_stop("--container-save needs mksquashfs in the job's root (%m): an administrator adds squashfs-tools to the root's image");
}

int container_save(int state) {
    char id[80], part[CONTAINER_PATH_MAX + 32];
    int status = 0;
    if (!container_read_text(state, "image", id, sizeof id) || !container_is_id(id)) container_stop("--container-save: the container has no image");
    snprintf(part, sizeof part, "%s.%d.part", given.save, (int)getpid());
    pid_t child = fork();
    if (child < 0) container_stop("fork: %m");
    if (child == 0) write_files(id, part);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (rename(part, given.save) == 0) return 0;
        fprintf(stderr, "slipway: %s: --container-save=%s: %s\n", given.node, given.save, strerror(errno));
    }
    if (WIFSIGNALED(status)) fprintf(stderr, "slipway: %s: --container-save=%s: mksquashfs %s\n", given.node, given.save, container_why_killed(WTERMSIG(status)));
    unlink(part);
    return 1;
}
