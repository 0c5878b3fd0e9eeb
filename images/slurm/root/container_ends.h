/* Between a task and /usr/lib/slipway/container: the descriptors that the task hands over, and the file by which other tasks find the holder. */
#ifndef SLIPWAY_CONTAINER_ENDS_H
#define SLIPWAY_CONTAINER_ENDS_H

enum {
    CONTAINER_FD_READY = 3, /* '1' goes there when tasks can join, '0' when the helper has said why they cannot */
    CONTAINER_FD_ROOM = 4, /* where it is a socket, the helper, and what it has pull, ask there for room */
    CONTAINER_FD_LOCK = 5, /* the container's lock: the helper has it, too, until it is ready, so that it holds even if the task is killed */
    CONTAINER_FD_END = 6, /* a socket to slurmstepd; at its end of file the step's tasks have ended, and the helper does */
    CONTAINER_FD_USERS = 7, /* the namespaces of a container that runs, to join or save it */
    CONTAINER_FD_MOUNTS = 8,
    CONTAINER_FD_COUNT,
};

/* Where a container has Slurm's client, with --container-mount-slurm: `root` is the job's, `bin` the programs, `user` its numbers outside. */
#define CONTAINER_SLURM "/run/slipway"

/* The start of its name, which ends with the step. It has the holder's process id, and is locked while the holder lives. */
#define CONTAINER_HOLDER "holder-"

#endif
