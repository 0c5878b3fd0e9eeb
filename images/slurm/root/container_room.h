/* How a pull, which has its user's rights only, has root make room for an image: a task asks the step's slurmstepd over a socket that no program of the
   user's inherits. A request is a number of MiB, 0 when the pull has ended. The answer is "room", "cache USED BOUND", "disk FREE" or "unknown". */
#ifndef SLIPWAY_CONTAINER_ROOM_H
#define SLIPWAY_CONTAINER_ROOM_H

#include <sys/types.h>

/* In a step's slurmstepd, before it forks tasks: begins to answer. `base`, the open folder of all users, is the callee's from now on. -1 with a reason. */
int container_room_serve(int base, uid_t user, unsigned long bound_mib);

/* The tasks' end, or -1 where nobody answers. */
int container_room_end(void);

#endif
