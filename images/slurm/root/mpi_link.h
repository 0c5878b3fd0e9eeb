/* The connection of a node's PMIx server to the hub, and the server's end. Any thread may use them. */
#ifndef SLIPWAY_MPI_LINK_H
#define SLIPWAY_MPI_LINK_H

#include "mpi_frame.h"

/* Whose it is: the connected socket, and the node's name. */
void mpi_open_link(int hub, const char *node);

/* Sends the frame, and frees it. */
void mpi_post(struct mpi_bytes *frame);

/* Ends the server. Tasks that wait for it go on without, here and, until the table is out, on the other nodes; all of them get the reason. */
_Noreturn void mpi_give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
