/* Jobs and sessions in the root.

   A job's mount namespace is made once on a node and pinned at /run/slipway/ns/<jobid>; every task joins it. slurmstepd stays
   outside, but for the job's /tmp. */
#ifndef SLIPWAY_ENTER_H
#define SLIPWAY_ENTER_H

#include <stdint.h>

#include "conf.h"
#include "version.h"

/* Gives the namespace of a job, opened; makes and pins it where that has not happened. `wanted`: the version it asked for, or NULL. The version is
   empty where there are none, and the namespace is the pod's with a /tmp, /var/tmp, /dev/shm and /run/lock of the job's own. */
int root_job_open(const struct root_conf *conf, uint32_t job, const char *wanted, root_version version);

/* The same of a job that runs here; makes nothing. */
int root_job_find(uint32_t job, root_version version);

/* The calling process joins it. `script`: NULL, or a file of the pod (a batch script) whose folder is made visible inside, read-only. */
int root_job_join(int space, const char *script);

/* The calling process, the slurmstepd of a step, sees the /tmp, /var/tmp and /scratch of the job, whose namespace is given, in place of the pod's, nothing in /dev/shm and /run/lock, where it
   cannot write either, and all else of the pod. Pins of jobs are not to be seen from then on: the kernel copies none of them into a new namespace. */
int root_step_cover(const struct root_conf *conf, uint32_t job, int space);

/* The same for the slurmstepd of a step whose tasks will not run: its files and its tasks' epilogs are still its user's to name. /tmp and /var/tmp are
   empty, and go with the step. */
int root_step_refuse(void);

/* Takes a job's part of this node away: the pin, its /tmp and /var/tmp, which the remover removes later (gone.h). */
int root_job_close(const struct root_conf *conf, uint32_t job, uid_t user);

/* The same of jobs without a pin: their epilog never ran, for instance because the pod ended first. */
int root_jobs_sweep(const struct root_conf *conf);

/* Moves the calling process into the current version, for ever. */
int root_session_enter(const struct root_conf *conf, root_version version);

#endif
