/* Containers of jobs: the flags of srun, sbatch and salloc, and how a task gets into its container.

   Nothing here has more rights than the job's user, but for the two functions of prolog and epilog. A step's first task on a node starts
   /usr/lib/slipway/container (container_main.c), which has the image pulled, makes a user and a mount namespace, and stays in them until every
   task of the step on that node has joined them: so processes of a step on a node share a user namespace, as MPI's shared memory needs it. */
#ifndef SLIPWAY_CONTAINER_H
#define SLIPWAY_CONTAINER_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run.h"

/* The descriptor on which the helper, and what it has pull, ask for room, where it is a socket. */
enum { ROOT_CONTAINER_ROOM = 4 };

#define ROOT_CONTAINER_HELPER "/usr/lib/slipway/container"

/* plugstack.conf's cache=MiB and registry=HOST[/PATH]; 1: it was one of them, 0: no, -1: it is wrong. */
int root_container_setting(const char *argument);

/* Registers the flags, in any context. */
int root_container_register(spank_t spank);

/* After all flags are read; -1 with a reason where they do not go together. In srun, sbatch and salloc. */
int root_container_check(void);

/* Whether the step's tasks are to run in a container. */
bool root_container_wanted(void);

/* In the pod, as root: the folder of the job's user. */
int root_container_open(uid_t user, gid_t group);

/* In the pod, as root, when a job ends or begins: what it had of containers, what jobs left that have no pin any
   more, and images above the bound that nobody uses. */
int root_container_close(uid_t user, uint32_t job);

/* In a step's slurmstepd, as root, before it forks tasks: has pulls ask it for room. */
int root_container_serve(uid_t user);

/* The calling task, its user by now and in the job's root, enters the container; its environment and folder are the image's. Does not return when
   that fails: one task of a node says why, in the job's stderr. */
void root_container_enter(spank_t spank);

#endif
