/* A session that pam_slurm_adopt has put into a job. */
#ifndef SLIPWAY_ADOPTED_H
#define SLIPWAY_ADOPTED_H

#include "version.h"

/* Moves the calling process into the namespace of the job whose cgroup it is in, for ever: it sees what the job's tasks see. */
int root_adopted_enter(root_version version);

#endif
