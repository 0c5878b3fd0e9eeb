/* What users write into the flags, checked and taken apart. Plain text in, plain text out: tests/unit/root fuzzes it. */
#ifndef SLIPWAY_CONTAINER_WORDS_H
#define SLIPWAY_CONTAINER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTAINER_PATH_MAX = 4096, CONTAINER_NAME_MAX = 64, CONTAINER_IMAGE_MAX = 1024, CONTAINER_LIST_MAX = 65536, CONTAINER_MOUNTS_MAX = 256 };

struct container_mount {
    char source[CONTAINER_PATH_MAX];
    char target[CONTAINER_PATH_MAX];
    bool is_read_only;
};

/* Each gives 0, or -1 with a reason that names the flag. */
int container_check_image(const char *text);
int container_check_name(const char *text);
int container_check_path(const char *flag, const char *text);
int container_check_env(const char *text);

/* Takes the first mount off a list SRC[:DST[:FLAGS]][,...]: `*text` moves behind it. 1: one was read, 0: there is none, -1: it is wrong. */
int container_next_mount(const char **text, struct container_mount *mount);
int container_check_mounts(const char *text);

/* Whether a list NAME[,NAME...] has a name. */
bool container_list_has(const char *list, const char *name, size_t length);

/* Whether the job's own value of a variable stays, whatever the image says: what Slurm and MPI tell a task. */
bool container_keeps(const char *name, size_t length);

#endif
