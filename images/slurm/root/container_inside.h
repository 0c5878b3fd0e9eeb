/* Paths in a container, looked up from outside as if its root were `/`: links of the image's lead nowhere else. `root` is the open root. */
#ifndef SLIPWAY_CONTAINER_INSIDE_H
#define SLIPWAY_CONTAINER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* open(2) with flags, but for O_CLOEXEC, which is always there; -1 with errno. */
int container_open_inside(int root, const char *path, uint64_t flags);

/* Where something can be mounted: made where it is missing, and in place of a link that leads nowhere or an object of the other kind when `replaces`.
   -1 with errno. */
int container_make_target(int root, const char *path, bool is_folder, bool replaces);

/* A file of the container, made anew: a link of the image's is not followed. Ends the helper where that fails. */
void container_replace_file(int root, const char *path, const char *text, size_t length);

#endif
