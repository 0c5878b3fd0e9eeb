/* A session that pam_slurm_adopt has put into a job. */
#ifndef SLIPWAY_ADOPTED_H
#define SLIPWAY_ADOPTED_H

#include "version.h"

/* Moves the calling process into the namespace of the job that it was adopted by, for ever: it sees what the job's tasks see. `job`: its number,
   as pam_slurm_adopt leaves it in PAM's environment, or NULL. */
int root_adopted_enter(const char *job, root_version version);

#endif
