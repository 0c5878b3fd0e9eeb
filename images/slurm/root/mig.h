/* The names by which CUDA knows a task's instances of NVIDIA's MIG. Slurm counts what it hands out from 0, and CUDA knows instances by their UUIDs. */
#ifndef SLIPWAY_MIG_H
#define SLIPWAY_MIG_H

#include <stdbool.h>
#include <stddef.h>

/* Of the worker (programs/worker/mig.py): a line for each instance, with a device file and a UUID. */
#define ROOT_MIG_LIST "/run/slipway/mig"
/* The most instances of a node, each with a file, a UUID, and a comma or a line feed. */
#define ROOT_MIG_MAX (1024 * 128)

/* The UUIDs of `list`, which is changed, whose device files `is_open` to the caller, with commas between them. Empty for none, and where they are
   longer than `size`. */
void root_mig_select(char *list, bool (*is_open)(const char *file), char *names, size_t size);

/* In a task's process: keeps the list, outside of the job's root. */
void root_mig_keep(void);
/* There again, in its cgroup: the instances that are the task's; empty for none. */
const char *root_mig_names(void);

#endif
