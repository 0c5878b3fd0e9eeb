/* A container's folder on the node, in its user's folder: where it is, its lock, and the list of the tasks that are in it. Tasks use it as the user. */
#ifndef SLIPWAY_CONTAINER_STATE_H
#define SLIPWAY_CONTAINER_STATE_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "container_words.h"

struct container_place {
    char user_folder[64], name[CONTAINER_NAME_MAX + 16], path[256], failed[64], desk[64], step[32];
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

/* Waits for the container's lock, which is held while it is made and until a task has joined. -1 with a reason. */
int container_lock_state(int state);

/* Opens the namespaces of the container, where it runs. */
bool container_find_member(int state, struct container_spaces *into);

/* Later steps of the job find the container by a task in it, while it runs. What made it waits for each of its step's tasks. */
void container_sign_in(spank_t spank, int state, const struct container_place *place);

#endif
