/* A container's namespaces, and the image with the container's changes over it as their root. Each ends the helper where it fails. */
#ifndef SLIPWAY_CONTAINER_OVERLAY_H
#define SLIPWAY_CONTAINER_OVERLAY_H

/* The process is from now on in a user and a mount namespace of its own. */
void container_make_spaces(void);

/* The process is from now on in those of a container that runs, which it was handed. */
void container_join(void);

/* Mounts the overlay, and opens its root. No other overlay has the changes: where one has, it waits a while for its end. */
int container_mount_image(const char *id);

/* Makes it the root of the namespace, and nothing else is there any more. */
void container_pivot(int root);

#endif
