/* Why a node's tasks have no PMIx server: a file in the server's folder, written by whoever notices first, and read by the tasks that wait. */
#ifndef SLIPWAY_MPI_WHY_H
#define SLIPWAY_MPI_WHY_H

#include <stdbool.h>
#include <stddef.h>

#define MPI_WHY_MAX 512 /* bytes, with the end */

/* Keeps the first reason that is written, whole. */
void mpi_why_write(const char *folder, const char *why);

/* True where there is a reason. It is a part of a list in OpenMPI's settings then: no line ends, and no commas. */
bool mpi_why_read(const char *folder, char *why, size_t room);

#endif
