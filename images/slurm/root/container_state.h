/* A container's folder on the node, in its user's folder: where it is, its lock, and its holders. Tasks use it as the user. */
#ifndef SLIPWAY_CONTAINER_STATE_H
#define SLIPWAY_CONTAINER_STATE_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "container_words.h"

struct container_place {
    char user_folder[64], name[CONTAINER_NAME_MAX + 16], path[256], failed[64], holder[64], step[32];
    uint32_t job, number;
};

/* The namespaces of a container, as descriptors. */
struct container_spaces {
    int users, mounts;
};

/* Where the container of the calling task's step is. */
void container_find_place(spank_t spank, struct container_place *place);

/* Opens the folder, made where it is missing. -1 with a reason. */
int container_open_state(const struct container_place *place);

/* Waits for the container's lock, which is held until the step has a holder. -1 with a reason. */
int container_lock_state(int state);

/* With the lock: opens the namespaces that the step's own holder, or any step's, keeps. False where none lives. */
bool container_find_own(int state, const struct container_place *place, struct container_spaces *into);
bool container_find_any(int state, struct container_spaces *into);

void container_close_spaces(struct container_spaces *spaces);

#endif
