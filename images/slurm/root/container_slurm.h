/* --container-mount-slurm: the container has the job's root, and programs that run Slurm's client there (container_client.c). */
#ifndef SLIPWAY_CONTAINER_SLURM_H
#define SLIPWAY_CONTAINER_SLURM_H

/* Before the container has anything: takes the job's root as it is. Ends the helper where that fails. */
void container_take_root(void);

/* Puts it into the container, at CONTAINER_SLURM. */
void container_fill_slurm(int root);

#endif
