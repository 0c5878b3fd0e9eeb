#include "container_flags.h"

#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "container_ends.h"
#include "reason.h"

enum { IMAGE = 1, NAME, SAVE, MOUNTS, WORKDIR, HOME, NO_HOME, SLURM, NO_SLURM, REMAP, NO_REMAP, WRITABLE, READONLY, ENV, ENTRYPOINT, NO_ENTRYPOINT };

static struct container_asked asked = {.cache_mib = "", .registry = ""};
const struct container_asked *const container_asked = &asked;
static bool has_any; /* of the flags */

int root_container_setting(const char *argument) {
    static const char cache[] = "cache=", host[] = "registry=";
    if (strncmp(argument, cache, sizeof cache - 1) == 0) {
        asked.cache_mib = argument + sizeof cache - 1;
        return *asked.cache_mib && strlen(asked.cache_mib) <= 9 && strspn(asked.cache_mib, "0123456789") == strlen(asked.cache_mib) ? 1 : -1;
    }
    if (strncmp(argument, host, sizeof host - 1) != 0) return 0;
    asked.registry = argument + sizeof host - 1;
    return *asked.registry ? 1 : -1;
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
    has_any = true;
    switch (which) {
    case IMAGE: return keep(&asked.image, text, container_check_image(text));
    case NAME: return take_name(text);
    case SAVE: return keep(&asked.save, text, container_check_file("container-save", text));
    case MOUNTS: return keep(&asked.mounts, text, container_check_mounts(text));
    case WORKDIR: return keep(&asked.workdir, text, container_check_path("container-workdir", text));
    case ENV: return keep(&asked.env, text, container_check_env(text));
    case HOME:
    case NO_HOME: asked.home = which == HOME; return 0;
    case SLURM:
    case NO_SLURM: asked.slurm = which == SLURM; return 0;
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
        {"container-mount-slurm", NULL, "the container has Slurm's commands, and the job's root at " CONTAINER_SLURM "/root", 0, SLURM, take_option},
        {"no-container-mount-slurm", NULL, "the container has the commands of its image only (default)", 0, NO_SLURM, take_option},
        {"container-remap-root", NULL, "be root in the container, with no more rights than the user has", 0, REMAP, take_option},
        {"no-container-remap-root", NULL, "be the user in the container (default)", 0, NO_REMAP, take_option},
        {"container-writable", NULL, "files of the container can be changed (default)", 0, WRITABLE, take_option},
        {"container-readonly", NULL, "files of the container cannot be changed", 0, READONLY, take_option},
        {"container-env", "NAME[,NAME...]", "variables that keep the job's value instead of the image's", 1, ENV, take_option},
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
    if (!has_any || root_container_wanted() || getenv("_SLURM_SPANK_OPTION_slipway_container_container_image")) return 0;
    return root_fail("the --container- options say nothing without --container-image or --container-name");
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

int container_resolve_paths(void) { return start_here(&asked.image) < 0 || start_here(&asked.save) < 0 ? -1 : 0; }
