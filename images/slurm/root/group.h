/* Control groups, where Slurm leaves something open: on cgroup v1 and v2.

   Slurm puts slurmstepd into its job's memory group. What a job leaves in memory without a process (/dev/shm, System V segments) is charged
   there, too, and no kill frees it: after the job's last process the kernel would take slurmstepd, and nobody would tell slurmctld. So slurmstepd
   leaves, and what it starts for the job later, a task's epilog, has to go back. */
#ifndef SLIPWAY_GROUP_H
#define SLIPWAY_GROUP_H

#include <stdint.h>
#include <sys/types.h>

enum { ROOT_GROUPS_MAX = 5 * 4096 };

/* Moves the slurmstepds of the caller's job into the memory group of the pod's first process. The caller is in the job's group. */
int root_group_spare(void);

/* Writes the folders of the groups that Slurm has put a task of a step into, a line each. Where it fails, the list stays as it was. */
int root_group_list(pid_t task, char list[ROOT_GROUPS_MAX]);

/* Puts the calling process into the groups of such a list. */
int root_group_enter(const char *list);

/* The kernel takes the calling process before any other of the pod. Raising the score needs no capability. */
int root_group_offer(void);

/* From here on the job has no more than `most` processes and threads on this node. For a step's slurmstepd: on v1 before its tasks join, on v2 while
   it is in the job's group, and nothing before. */
int root_group_limit(uint32_t job, unsigned long most);

/* Puts the calling process, and what it starts, under its job's limit, where there is one. */
int root_group_join(uint32_t job);

/* Removes what root_group_limit made, and kills the processes that are left in it: the job has ended. */
void root_group_remove(uint32_t job);

/* The folder of the job that a task belongs to, in the hierarchy of a controller: the one of its memory group, as Slurm 26.05 adds tasks to groups of
   cpuacct (v1) later than it calls plugins. Empty where the pod shows none. */
void root_group_of_job(pid_t task, const char *controller, char folder[ROOT_GROUPS_MAX]);

#endif
