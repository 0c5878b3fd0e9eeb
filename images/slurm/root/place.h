/* Puts the calling process, which has a mount namespace of its own, into a version of the root.

   The pod's file system is out of reach afterwards: pivot_root(2), then the old root is detached. Mounts of the pod are taken over as
   slaves, so what the node unmounts goes away inside, too, and nothing travels outwards. */
#ifndef SLIPWAY_PLACE_H
#define SLIPWAY_PLACE_H

#include "conf.h"

#define ROOT_RUN "/run/slipway"
#define ROOT_PINS ROOT_RUN "/ns"
#define ROOT_STAGE ROOT_RUN "/stage"
#define ROOT_LOCKS ROOT_RUN "/locks" /* closed to users, as are the pins */

/* `job_tmp` is the folder with a job's tmp and var_tmp; NULL takes the pod's own, and leaves its /dev/shm. */
int root_place(const struct root_conf *conf, const char *version, const char *job_tmp);

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
