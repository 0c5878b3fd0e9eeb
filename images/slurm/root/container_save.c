#include "container_save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

int container_save(int state) {
    char id[80], part[CONTAINER_PATH_MAX + 32], merged[CONTAINER_PATH_MAX];
    int status = 0;
    if (!container_read_text(state, "image", id, sizeof id) || !container_is_id(id)) container_stop("--container-save: the container has no image");
    container_make_spaces();
    int root = container_mount_image(id);
    describe(root, id);
    close(root);
    snprintf(merged, sizeof merged, "%s/merged", given.state);
    snprintf(part, sizeof part, "%s.%d.part", given.save, (int)getpid());
    pid_t child = fork();
    if (child < 0) container_stop("fork: %m");
    if (child == 0) {
        char *const words[] = {"mksquashfs", merged, part, "-noappend", "-all-root", "-no-progress", "-quiet", "-no-xattrs", "-processors", "2", NULL};
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execv("/usr/bin/mksquashfs", words);
        container_stop("--container-save needs mksquashfs in the job's root (%m): an administrator adds squashfs-tools to the root's image");
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && rename(part, given.save) == 0) return 0;
    bool has_spoken = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    if (!has_spoken) fprintf(stderr, "slipway: %s: --container-save=%s: %s\n", given.node, given.save, strerror(errno));
    unlink(part);
    return 1;
}
