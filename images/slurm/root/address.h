/* Addresses of nodes. */
#ifndef SLIPWAY_ADDRESS_H
#define SLIPWAY_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* True for an address of this machine or pod, and where these cannot be listed; false for one of another, and for none. */
bool root_address_is_here(const struct sockaddr_storage *address);

#endif
