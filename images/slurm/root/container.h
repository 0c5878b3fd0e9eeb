/* Containers of jobs: how a task gets into its container.

   Nothing here has more rights than the job's user; what runs as root is in container_pod.c. A step's first task on a node starts
   /usr/lib/slipway/container (container_main.c), which has the image pulled, makes a user and a mount namespace, and stays in them until the last
   task of the step on that node has ended. All of them join it: so they share a user namespace, as MPI's shared memory needs it. */
#ifndef SLIPWAY_CONTAINER_H
#define SLIPWAY_CONTAINER_H

#include <slurm/spank.h>

/* The calling task, its user by now and in the job's root, enters the container; its environment and folder are the image's. Does not return when
   that fails: one task of a node says why, in the job's stderr. */
void root_container_enter(spank_t spank);

#endif
