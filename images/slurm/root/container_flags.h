/* What a step asks of its container: the flags of srun, sbatch and salloc, and the plugin's arguments in plugstack.conf. A process reads one set of
   them, so there is one. */
#ifndef SLIPWAY_CONTAINER_FLAGS_H
#define SLIPWAY_CONTAINER_FLAGS_H

#include <slurm/spank.h>
#include <stdbool.h>

#include "container_words.h"

struct container_asked {
    const char *image, *name, *save, *mounts, *workdir, *env; /* NULL where the flag is not given */
    enum container_use use;
    bool home, slurm, remap, readonly;
    const char *cache_mib, *registry; /* of plugstack.conf; "" where it has none */
};
extern const struct container_asked *const container_asked;

/* plugstack.conf's cache=MiB and registry=HOST[/PATH]; 1: it was one of them, 0: no, -1: it is wrong. */
int root_container_setting(const char *argument);

/* Registers the flags, in any context. */
int root_container_register(spank_t spank);

/* After all flags are read; -1 with a reason where they do not go together. In srun, sbatch and salloc. */
int root_container_check(void);

/* Whether the step's tasks are to run in a container. */
bool root_container_wanted(void);

/* In a task, before it enters: makes `image` and `save` absolute where they begin with a dot. -1 with a reason. */
int container_resolve_paths(void);

#endif
