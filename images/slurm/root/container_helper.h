/* How a task starts /usr/lib/slipway/container (container_main.c), which makes a container, or saves it. */
#ifndef SLIPWAY_CONTAINER_HELPER_H
#define SLIPWAY_CONTAINER_HELPER_H

#include <slurm/spank.h>

#include "container_state.h"

/* Has the container made, as the flags ask for it; it can be joined when this returns 0. -1: with a reason, or the helper has said why. */
int container_helper_make(spank_t spank, const struct container_place *place);

/* Runs the helper once more, for the node's tasks have ended; gives its wait status. */
int container_helper_save(const struct container_place *place, char **environment);

#endif
