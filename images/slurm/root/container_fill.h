/* What a container has beside its image: mounts of the node, of Slurm and of the user, and the user's own lines in its files. */
#ifndef SLIPWAY_CONTAINER_FILL_H
#define SLIPWAY_CONTAINER_FILL_H

/* Into the open root, before the helper makes it its own. Ends the helper where it fails. */
void container_fill(int root);

#endif
