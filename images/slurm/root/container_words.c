#include "container_words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "reason.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) return true;
    return false;
}

int container_check_image(const char *text) {
    if (*text == 0) return root_fail("--container-image: give an image, such as docker://registry.example.com/team/image:tag or /path/image.sqsh");
    if (strlen(text) > CONTAINER_IMAGE_MAX) return root_fail("--container-image: longer than %d characters", CONTAINER_IMAGE_MAX);
    if (has_control(text) || strchr(text, ' ')) return root_fail("--container-image: has a space or a control character");
    if (*text == '-') return root_fail("--container-image: begins with a dash: %.200s", text);
    static const char *const daemons[] = {"dockerd://", "podman://"};
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; i++)
        if (strncmp(text, daemons[i], strlen(daemons[i])) == 0)
            return root_fail("--container-image: nodes have no images of a daemon (%s): push the image to a registry, or write it into a file by `docker save`",
                             daemons[i]);
    return 0;
}

int container_read_name(const char *text, char name[CONTAINER_NAME_MAX + 1], enum container_use *use) {
    static const char *const uses[] = {[CONTAINER_AUTO] = "auto", [CONTAINER_CREATE] = "create", [CONTAINER_EXEC] = "exec", [CONTAINER_NO_EXEC] = "no_exec"};
    size_t length = strcspn(text, ":");
    bool is_plain = length > 0 && length <= CONTAINER_NAME_MAX && strchr(LETTERS DIGITS, *text) && strspn(text, LETTERS DIGITS "._-") == length;
    if (!is_plain)
        return root_fail("--container-name: letters, digits, '.', '_' and '-', first a letter or digit, %d at most: %.100s", CONTAINER_NAME_MAX, text);
    memcpy(name, text, length);
    name[length] = 0;
    *use = CONTAINER_AUTO;
    if (text[length] == 0) return 0;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strcmp(text + length + 1, uses[i]) == 0) {
            *use = (enum container_use)i;
            return 0;
        }
    return root_fail("--container-name: what may follow the name is :auto, :create, :exec or :no_exec, not %.100s", text + length);
}

bool container_is_relative(const char *path) {
    size_t dots = strspn(path, ".");
    return (dots == 1 || dots == 2) && (path[dots] == '/' || path[dots] == 0);
}

static int check_length(const char *flag, const char *text) {
    if (strlen(text) >= CONTAINER_PATH_MAX || has_control(text)) return root_fail("--%s: too long, or with control characters", flag);
    return 0;
}

int container_check_path(const char *flag, const char *text) {
    return *text == '/' ? check_length(flag, text) : root_fail("--%s: not an absolute path: %.300s", flag, text);
}

int container_check_file(const char *flag, const char *text) {
    if (*text != '/' && !container_is_relative(text)) return root_fail("--%s: neither /path nor ./path: %.300s", flag, text);
    return check_length(flag, text);
}

int container_check_env(const char *text) {
    if (strlen(text) >= CONTAINER_LIST_MAX) return root_fail("--container-env: longer than %d characters", CONTAINER_LIST_MAX);
    for (const char *name = text;; name++) {
        size_t length = strcspn(name, ",");
        if (length == 0 || strspn(name, LETTERS DIGITS "_") != length || strchr(DIGITS, *name))
            return root_fail("--container-env: names of variables, separated by commas: %.300s", text);
        name += length;
        if (*name == 0) return 0;
    }
}

/* The next part of a mount, up to a colon or comma. */
static int take_part(const char **text, char into[CONTAINER_PATH_MAX]) {
    size_t length = strcspn(*text, ":,");
    if (length >= CONTAINER_PATH_MAX) return root_fail("--container-mounts: a path is too long");
    memcpy(into, *text, length);
    into[length] = 0;
    *text += length;
    if (**text == ':') {
        ++*text;
        return 1;
    }
    return 0;
}

static bool is_one_of(const char *const *words, size_t count, const char *word, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == length && strncmp(words[i], word, length) == 0) return true;
    return false;
}

/* As enroot has them. A target is made where it is missing, in any case, and no mount of a container is seen outside. */
static int read_flags(const char *flags, struct container_mount *mount) {
    static const char *const private[] = {"private", "rprivate"};
    static const char *const usual[] = {"rw", "bind", "rbind", "slave", "rslave", "x-create=auto", "x-create=dir", "x-create=file"};
    for (const char *flag = flags;; flag++) {
        size_t length = strcspn(flag, "+");
        if (length == 2 && strncmp(flag, "ro", 2) == 0) mount->is_read_only = true;
        else if (is_one_of(private, sizeof private / sizeof *private, flag, length)) mount->is_private = true;
        else if (!is_one_of(usual, sizeof usual / sizeof *usual, flag, length))
            return root_fail("--container-mounts: flags are ro, rw, private and slave, not %.*s", (int)(length < 100 ? length : 100), flag);
        flag += length;
        if (*flag == 0) return 0;
    }
}

int container_next_mount(const char **text, struct container_mount *mount) {
    char flags[CONTAINER_PATH_MAX] = "rw";
    memset(mount, 0, sizeof *mount);
    if (**text == 0) return 0;
    int more = take_part(text, mount->source);
    if (more < 0) return -1;
    if (more == 0) strcpy(mount->target, mount->source);
    else if ((more = take_part(text, mount->target)) < 0) return -1;
    if (more && (more = take_part(text, flags)) < 0) return -1;
    if (more) return root_fail("--container-mounts: SRC, SRC:DST or SRC:DST:FLAGS, not more: %.200s", *text);
    if ((mount->source[0] != '/' && !container_is_relative(mount->source)) || mount->target[0] != '/')
        return root_fail("--container-mounts: neither /SRC:/DST nor ./SRC:/DST: %.200s:%.200s", mount->source, mount->target);
    if (mount->target[strspn(mount->target, "/")] == 0) return root_fail("--container-mounts: / of the container is the image");
    if (has_control(mount->source) || has_control(mount->target)) return root_fail("--container-mounts: a path has a control character");
    if (read_flags(flags, mount) < 0) return -1;
    if (**text == ',') ++*text;
    return 1;
}

int container_check_mounts(const char *text) {
    struct container_mount mount;
    int count = 0, result;
    if (*text == 0) return root_fail("--container-mounts: give SRC:DST, such as /data/set:/data:ro");
    if (strlen(text) >= CONTAINER_LIST_MAX) return root_fail("--container-mounts: longer than %d characters", CONTAINER_LIST_MAX);
    while ((result = container_next_mount(&text, &mount)) > 0)
        if (++count > CONTAINER_MOUNTS_MAX) return root_fail("--container-mounts: more than %d", CONTAINER_MOUNTS_MAX);
    return result;
}

bool container_list_has(const char *list, const char *name, size_t length) {
    while (list && *list) {
        size_t next = strcspn(list, ",");
        if (next == length && strncmp(list, name, length) == 0) return true;
        list += next + (list[next] == ',');
    }
    return false;
}

static bool begins_with_any(const char *const *starts, size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (length >= strlen(starts[i]) && strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

bool container_drops(const char *name, size_t length) {
    static const char *const starts[] = {"LMOD_", "__LMOD_", "_ModuleTable"};
    static const char *const whole[] = {"BASH_ENV", "ENV", "MANPATH", "MODULEPATH", "MODULEPATH_ROOT", "MODULESHOME", "LOADEDMODULES", "_LMFILES_",
                                        "BASH_FUNC_module%%", "BASH_FUNC_ml%%", "BASH_FUNC_clearMT%%", "BASH_FUNC_clearLmod%%", "BASH_FUNC_xSetTitleLmod%%"};
    return begins_with_any(starts, sizeof starts / sizeof *starts, name, length) || is_one_of(whole, sizeof whole / sizeof *whole, name, length);
}

bool container_keeps(const char *name, size_t length) {
    static const char *const starts[] = {"SLURM", "SBATCH_", "SRUN_", "PMI", "SLIPWAY_", "_SLURM"};
    static const char *const whole[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "OMPI_MCA_part",
                                        "USER", "LOGNAME", "HOSTNAME"};
    return begins_with_any(starts, sizeof starts / sizeof *starts, name, length) || is_one_of(whole, sizeof whole / sizeof *whole, name, length);
}

const char *container_why_killed(int signal) {
    static char text[48];
    if (signal == SIGKILL) return "was killed, as programs are when the job's memory is used up: give the job more (--mem)";
    snprintf(text, sizeof text, "was ended by signal %d", signal);
    return text;
}
