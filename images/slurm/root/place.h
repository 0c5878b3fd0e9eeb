/* Puts the calling process, which has a mount namespace of its own, into a version of the root.

   The pod's file system is out of reach afterwards: pivot_root(2), then the old root is detached. Mounts of the pod are taken over as
   slaves, so what the node unmounts goes away inside, too, and nothing travels outwards. */
#ifndef SLIPWAY_PLACE_H
#define SLIPWAY_PLACE_H

#include "conf.h"

/* `job_tmp` is the folder with a job's tmp and var_tmp; NULL takes the pod's own, and leaves its /dev/shm. */
int root_place(const struct root_conf *conf, const char *version, const char *job_tmp);

#endif
