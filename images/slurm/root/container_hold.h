/* slurmstepd's part in the life of a container: it tells the step's holder (container_main.c) that the last task has ended. */
#ifndef SLIPWAY_CONTAINER_HOLD_H
#define SLIPWAY_CONTAINER_HOLD_H

#include <slurm/spank.h>

/* In slurmstepd, before it forks tasks. -1 with a reason; then no task gets into a container. */
int root_container_hold(void);

/* There, after each task. With the last one the holder ends, and is waited for: slurmstepd looks for what is left in the step's cgroup at once, and then
   not before a second is over. */
void root_container_task_ended(spank_t spank);

/* In a task: the end that its step's holder watches; -1 where there is none. */
int container_hold_end(void);

#endif
