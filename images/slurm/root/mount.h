/* Mounts for a version of the root: copies of the pod's and new ones, and the paths inside that they are attached to. */
#ifndef SLIPWAY_MOUNT_H
#define SLIPWAY_MOUNT_H

#include <stdbool.h>

/* Opens a path below `root` for a mount, and makes what is missing of it. No link is followed anywhere: a user may own a part of it. */
int root_target(int root, const char *path, bool is_file);

/* A copy of the mounts at a path of this namespace, to be attached elsewhere; -1 with errno only. */
int root_clone(const char *path, bool is_recursive);

/* A new tmpfs, not attached yet; -1 with errno only. */
int root_tmpfs(const char *mode);

/* Attaches what the two above gave, and closes it; the target stays open. */
int root_attach(int tree, int target);

/* Sets flags such as MOUNT_ATTR_RDONLY on a mount and those below it. */
int root_restrict(int tree, unsigned long long attributes);

/* From here on no setuid program gets rights in this namespace. For a worker's pod, which is privileged: an administrator of a version, who
   is root only there, may have put one into a home. */
int root_seal(void);

#endif
