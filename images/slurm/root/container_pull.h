/* The image of a container: the one that it had in an earlier step, or that the job has used by the same reference, else one that is pulled. */
#ifndef SLIPWAY_CONTAINER_PULL_H
#define SLIPWAY_CONTAINER_PULL_H

/* Finds its id, and keeps it from being evicted; does not return where there is none. `state` is the container's open folder. */
void container_find_image(int state, char id[80]);

#endif
