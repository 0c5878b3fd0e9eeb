/* How a task starts /usr/lib/slipway/container (container_main.c), which makes a container, joins or saves it. */
#ifndef SLIPWAY_CONTAINER_HELPER_H
#define SLIPWAY_CONTAINER_HELPER_H

#include <slurm/spank.h>

#include "container_state.h"

/* With the lock: gives the step a holder, in `spaces`, or in a container made as the flags ask for it where these are -1. Tasks can join when this
   returns 0. -1: with a reason, or the helper has said why. */
int container_helper_hold(spank_t spank, const struct container_place *place, int lock, const struct container_spaces *spaces);

/* Runs the helper once more, for the node's tasks have ended; gives its wait status. */
int container_helper_save(const struct container_place *place, char **environment, const struct container_spaces *spaces);

#endif
