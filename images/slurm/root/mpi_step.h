/* The step that a node's PMIx server is for: who its ranks are, and where. The server is one process, so there is one. */
#ifndef SLIPWAY_MPI_STEP_H
#define SLIPWAY_MPI_STEP_H

#include <pmix.h>
#include <pmix_server.h>
#include <stdint.h>

#include "mpi_frame.h"

#define MPI_RANKS_MAX 65536u

struct mpi_step {
    uint32_t node_count, node_number, task_count, own_count, *own; /* own: the ranks of this node; NULL until the table has come */
    char *names[MPI_NODES_MAX], *ranks[MPI_NODES_MAX];
    uint32_t home[MPI_RANKS_MAX];     /* the node of each rank */
    char **variables[MPI_RANKS_MAX]; /* for the environment of each own rank, once the step is registered */
    pmix_nspace_t space;
};
extern struct mpi_step step;

/* Gives up where libpmix says no to what it was asked. */
void mpi_need(pmix_status_t status, const char *what);

/* Reads the step from Slurm's variables. */
void mpi_read_step(void);

/* Reads from the hub's table who is where. */
void mpi_take_table(struct mpi_reader reader);

/* Tells libpmix all of it. `lost` hears of ranks whose connection has ended. */
void mpi_register_step(const char *folder, pmix_notification_fn_t lost);

#endif
