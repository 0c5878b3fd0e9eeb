/* What root does for containers in the pod: the users' folders in prolog and epilog, and room for images while a step runs. */
#ifndef SLIPWAY_CONTAINER_POD_H
#define SLIPWAY_CONTAINER_POD_H

#include <stdint.h>
#include <sys/types.h>

/* In the pod, as root: the folder of the job's user. */
int root_container_open(uid_t user, gid_t group);

/* In the pod, as root, when a job ends or begins: takes away what it had of containers, and has the remover look at the images. */
int root_container_close(uid_t user, uint32_t job);

/* In a step's slurmstepd, as root: waits for the remover, up to ten seconds, where too much of the user's is still to be removed. -1 with a reason that
   is for the user. */
int root_container_await(uid_t user);

/* In a step's slurmstepd, as root, before it forks tasks: has pulls ask it for room. */
int root_container_serve(uid_t user);

#endif
