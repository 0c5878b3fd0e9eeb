#include "container_environment.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_flags.h"
#include "driver.h"
#include "owned.h"
#include "reason.h"

static ssize_t read_whole(int folder, const char *name, char *into, size_t room) {
    owned_fd file = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = 0, got;
    while (file >= 0 && (got = read(file, into + length, room - 1 - (size_t)length)) > 0) length += got;
    into[length] = 0;
    return length;
}

void container_read_image(const struct container_place *place, int state, struct container_image *image) {
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

static void set_variable(spank_t spank, const char *word) {
    char name[256];
    size_t length = strcspn(word, "=");
    if (word[length] != '=' || length == 0 || length >= sizeof name) return;
    if (container_keeps(word, length)) return;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    static char ignored[131072];
    if (container_list_has(container_asked->env, word, length) && spank_getenv(spank, name, ignored, sizeof ignored) != ESPANK_ENV_NOEXIST) return;
    spank_setenv(spank, name, word + length + 1, 1);
}

static void put_first(spank_t spank, const char *folder) {
    static char old[65536], wanted[sizeof old + 64];
    if (spank_getenv(spank, "PATH", old, sizeof old) != ESPANK_SUCCESS) return;
    snprintf(wanted, sizeof wanted, "%s:%s", folder, old);
    spank_setenv(spank, "PATH", wanted, 1);
}

static void add_driver(spank_t spank) {
    static char old[65536], wanted[sizeof old + 64];
    if (access(ROOT_DRIVER_BIN, F_OK) == 0) put_first(spank, ROOT_DRIVER_BIN);
    if (access(ROOT_DRIVER_LIB, F_OK) < 0) return;
    bool has_path = spank_getenv(spank, "LD_LIBRARY_PATH", old, sizeof old) == ESPANK_SUCCESS && *old;
    snprintf(wanted, sizeof wanted, "%s%s" ROOT_DRIVER_LIB, has_path ? old : "", has_path ? ":" : "");
    spank_setenv(spank, "LD_LIBRARY_PATH", wanted, 1);
}

static void drop_variables(spank_t spank) {
    char **variables, name[256];
    if (spank_get_item(spank, S_JOB_ENV, &variables) != ESPANK_SUCCESS) return;
    for (size_t i = 0; variables && variables[i];) {
        size_t length = strcspn(variables[i], "=");
        bool goes = container_drops(variables[i], length) && !container_list_has(container_asked->env, variables[i], length);
        snprintf(name, sizeof name, "%.*s", (int)length, variables[i]);
        if (!goes || spank_unsetenv(spank, name) != ESPANK_SUCCESS) i++; /* else the next one is here now */
        if (spank_get_item(spank, S_JOB_ENV, &variables) != ESPANK_SUCCESS) return;
    }
}

void container_set_environment(spank_t spank, const struct container_image *image) {
    bool has_path = false;
    drop_variables(spank);
    for (const char *word = image->variables; word < image->variables + image->length; word += strlen(word) + 1) {
        has_path |= strncmp(word, "PATH=", 5) == 0;
        set_variable(spank, word);
    }
    if (!has_path && !container_list_has(container_asked->env, "PATH", 4))
        spank_setenv(spank, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    if (container_asked->name) spank_setenv(spank, "SLIPWAY_CONTAINER_NAME", container_asked->name, 1);
    add_driver(spank);
    if (container_asked->slurm) put_first(spank, CONTAINER_SLURM "/bin");
}

static int go(const struct container_image *image) {
    if (container_asked->workdir) return chdir(container_asked->workdir) == 0 ? 0 : root_fail("--container-workdir=%s: %m", container_asked->workdir);
    if (*image->folder == 0 || chdir(image->folder) < 0) return chdir("/");
    return 0;
}

int container_go_to_folder(spank_t spank, const struct container_image *image) {
    static char folder[CONTAINER_PATH_MAX];
    if (go(image) < 0) return -1;
    if (getcwd(folder, sizeof folder)) spank_setenv(spank, "PWD", folder, 1);
    spank_unsetenv(spank, "OLDPWD");
    return 0;
}
