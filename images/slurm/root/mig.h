/* The names by which CUDA knows a task's GPUs: whole ones by their numbers from 0, instances of NVIDIA's MIG by their UUIDs, where Slurm counts what
   it hands out from 0. */
#ifndef SLIPWAY_MIG_H
#define SLIPWAY_MIG_H

#include <stdbool.h>
#include <stddef.h>

/* Of the worker (programs/worker/mig.py): a line for each instance, with a device file and a UUID. */
#define ROOT_MIG_LIST "/run/slipway/mig"
/* The most instances of a node, each with a file, a UUID, and a comma or a line feed. */
#define ROOT_MIG_MAX (1024 * 128)
/* The most GPUs of a node. Source: NVIDIA's driver, NV_MAX_DEVICES. */
#define ROOT_GPUS_MAX 32

/* The UUIDs of `list`, which is changed, whose device files `is_open` to the caller, with commas between them. Empty for none, and where they are
   longer than `size`. */
void root_mig_select(char *list, bool (*is_open)(const char *file), char *names, size_t size);

/* In a task's process: keeps the list, outside of the job's root. */
void root_mig_keep(void);
/* There again, in its cgroup: the instances that are the task's; empty for none. */
const char *root_mig_names(void);

/* Numbers from 0, with commas between them, for each of NVIDIA's whole GPUs whose device file `is_open` to the caller. Empty for none. */
void root_gpus_count(bool (*is_open)(const char *file), char *names, size_t size);
/* For a session in a job's cgroup, once it is in the job's root: what CUDA_VISIBLE_DEVICES has in the job's tasks; empty for none. */
const char *root_gpus_visible(void);

#endif
