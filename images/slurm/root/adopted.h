/* A session that pam_slurm_adopt has put into a job. */
#ifndef SLIPWAY_ADOPTED_H
#define SLIPWAY_ADOPTED_H

#include <stdint.h>

#include "version.h"

/* The number of a job, as pam_slurm_adopt leaves it in PAM's environment; 0 for NULL and what is none. */
uint32_t root_adopted_job(const char *text);

/* Moves the calling process into the namespace of the job that it was adopted by, for ever: it sees what the job's tasks see. A job with
   the number 0 is refused. */
int root_adopted_enter(uint32_t job, root_version version);

#endif
