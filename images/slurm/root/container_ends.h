/* The descriptors that a task hands to /usr/lib/slipway/container. */
#ifndef SLIPWAY_CONTAINER_ENDS_H
#define SLIPWAY_CONTAINER_ENDS_H

enum {
    CONTAINER_FD_READY = 3, /* one byte goes there when tasks can join */
    CONTAINER_FD_ROOM = 4, /* where it is a socket, the helper, and what it has pull, ask there for room */
};

#endif
