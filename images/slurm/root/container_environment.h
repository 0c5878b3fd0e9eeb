/* A task's environment and folder in its container: the image's, but for what Slurm and MPI tell the task and for what the flags keep. */
#ifndef SLIPWAY_CONTAINER_ENVIRONMENT_H
#define SLIPWAY_CONTAINER_ENVIRONMENT_H

#include <slurm/spank.h>
#include <sys/types.h>

#include "container_state.h"
#include "container_words.h"

/* What the image says of environment and folder; read before the container is entered, used after. */
struct container_image {
    char variables[1 << 20], folder[CONTAINER_PATH_MAX];
    ssize_t length;
};

/* Leaves `image` as it is where the container has none. */
void container_read_image(const struct container_place *place, int state, struct container_image *image);

void container_set_environment(spank_t spank, const struct container_image *image);

/* --container-workdir, else the image's folder, else /; PWD says so. -1, with a reason where the user named the folder. */
int container_go_to_folder(spank_t spank, const struct container_image *image);

#endif
