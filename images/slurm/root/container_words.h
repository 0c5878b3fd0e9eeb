/* What users write into the flags, checked and taken apart. Plain text in, plain text out: tests/unit/root fuzzes it. */
#ifndef SLIPWAY_CONTAINER_WORDS_H
#define SLIPWAY_CONTAINER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTAINER_PATH_MAX = 4096, CONTAINER_NAME_MAX = 64, CONTAINER_IMAGE_MAX = 1024, CONTAINER_LIST_MAX = 65536, CONTAINER_MOUNTS_MAX = 256 };

struct container_mount {
    char source[CONTAINER_PATH_MAX];
    char target[CONTAINER_PATH_MAX];
    bool is_read_only, is_private;
};

/* What a step does with a container of its name. */
enum container_use {
    CONTAINER_AUTO, /* joins it where it runs, uses it where there is one, else makes it */
    CONTAINER_CREATE, /* makes it; there must be none */
    CONTAINER_EXEC, /* joins it; it must run */
    CONTAINER_NO_EXEC, /* as AUTO, but joins no other step */
};

/* Each gives 0, or -1 with a reason that names the flag. */
int container_check_image(const char *text);
int container_check_path(const char *flag, const char *text);
int container_check_file(const char *flag, const char *text); /* may begin with ./ or ../, from the folder of the job */
int container_check_env(const char *text);

/* Takes NAME[:USE] apart. */
int container_read_name(const char *text, char name[CONTAINER_NAME_MAX + 1], enum container_use *use);

/* Whether a path begins at the folder that the job runs in: ".", "./x", "../x". */
bool container_is_relative(const char *path);

/* Takes the first mount off a list SRC[:DST[:FLAGS]][,...]: `*text` moves behind it. 1: one was read, 0: there is none, -1: it is wrong. */
int container_next_mount(const char **text, struct container_mount *mount);
int container_check_mounts(const char *text);

/* Whether a list NAME[,NAME...] has a name. */
bool container_list_has(const char *list, const char *name, size_t length);

/* Whether the job's own value of a variable stays, whatever the image says: what Slurm and MPI tell a task. */
bool container_keeps(const char *name, size_t length);

/* Whether a variable of the job is about the root's files, not the image's: the functions and state of environment modules, what bash reads at its
   start, and where manuals are. */
bool container_drops(const char *name, size_t length);

/* How a program ended that a signal did: the predicate of a sentence. */
const char *container_why_killed(int signal);

#endif
