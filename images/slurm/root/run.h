/* The folders that the plugins keep in a pod's /run. */
#ifndef SLIPWAY_RUN_H
#define SLIPWAY_RUN_H

#define ROOT_RUN "/run/slipway"
#define ROOT_PINS ROOT_RUN "/ns"
#define ROOT_STAGE ROOT_RUN "/stage"
#define ROOT_LOCKS ROOT_RUN "/locks" /* closed to users, as are the pins */

/* On the node's disk: a folder for each user who had a job here, and theirs. */
#define ROOT_CONTAINERS "/var/spool/slipway/containers"

#endif
