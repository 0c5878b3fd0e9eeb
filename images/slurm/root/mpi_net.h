/* Where a step's hub listens, and how the nodes reach it. */
#ifndef SLIPWAY_MPI_NET_H
#define SLIPWAY_MPI_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "mpi_frame.h"

#define MPI_ADDRESSES_MAX 4
#define MPI_PLACE_MAX 256 /* bytes of a place as text, with its end */

struct mpi_place {
    char key[MPI_KEY + 1];
    size_t count;
    struct sockaddr_storage addresses[MPI_ADDRESSES_MAX]; /* with the port */
};

/* `KEY PORT ADDRESS...`: what srun hands to the nodes. False where it is anything else. */
bool mpi_read_place(const char *text, struct mpi_place *place);

/* Appends the machine's addresses to the text, each after a blank; false where it has none. */
bool mpi_add_addresses(char *text, size_t room);

/* A socket that listens on all addresses, at a port from the first to the last of the range, or at any port where range is NULL. -1 with errno. */
int mpi_listen(const uint16_t *range, uint16_t *port);

/* Connects to whichever of the addresses answers first: which of them this node reaches, it does not know. All of them have limit_ms together.
   A socket that blocks, or -1 with errno. */
int mpi_reach(const struct mpi_place *place, int limit_ms);

#endif
