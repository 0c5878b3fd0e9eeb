/* What /usr/lib/slipway/container was told to do, and how its parts end it, and read and write the files of its state. The helper is one process and
   makes one container, so there is one. */
#ifndef SLIPWAY_CONTAINER_GIVEN_H
#define SLIPWAY_CONTAINER_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

struct container_given {
    const char *base, *state, *step, *node, *image, *record, *home, *passwd, *group, *script, *workdir, *registry, *mounts, *save;
    const char *slurm; /* the numbers of user and group for --container-mount-slurm */
    const char *cache; /* for roots whose pulls keep a bound of their own, as this one's do not */
    bool joins, remap, readonly; /* joins: the container runs, and only a holder for another step is wanted */
    bool has_room; /* whether slurmstepd answers on CONTAINER_FD_ROOM, as one that is older does not */
};
extern struct container_given given;

/* Reads the arguments, key=value words. */
void container_read_arguments(int count, char **words);

/* Ends the helper with a line on stderr. */
_Noreturn void container_stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends it where the line is written already. */
_Noreturn void container_end(void);

/* The first line of a file; false, and an empty text, where there is none. */
bool container_read_text(int folder, const char *name, char *into, size_t room);

void container_write_text(int folder, const char *name, const char *text);

/* Whether the text is the id of an image. */
bool container_is_id(const char *text);

#endif
