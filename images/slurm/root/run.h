/* The folders that the plugins keep in a pod's /run. */
#ifndef SLIPWAY_RUN_H
#define SLIPWAY_RUN_H

#define ROOT_RUN "/run/slipway"
#define ROOT_PINS ROOT_RUN "/ns"
#define ROOT_STAGE ROOT_RUN "/stage"
#define ROOT_LOCKS ROOT_RUN "/locks" /* closed to users, as are the pins */

/* Where the pod's node is in the first topology, as SLURM_TOPOLOGY_ADDR has it before the node; there with `topologies` only. */
#define ROOT_ADDRESS "/etc/slipway/place/address"

/* On the node's disk: a folder for each user who had a job here, and theirs. */
#define ROOT_CONTAINERS "/var/spool/slipway/containers"

#endif
