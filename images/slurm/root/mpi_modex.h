/* What the ranks of a node have for those of others, and what their ends mean for these: libpmix's calls, in a thread of its own, become frames to
   the hub, and the hub's answers go back to libpmix. */
#ifndef SLIPWAY_MPI_MODEX_H
#define SLIPWAY_MPI_MODEX_H

#include <pmix_server.h>

#include "mpi_frame.h"

extern pmix_server_module_t mpi_module;

/* The hub's MPI_FENCED and MPI_ANSWER, without who answers. */
void mpi_take_answer(struct mpi_reader reader);
/* Another node's MPI_ASK: libpmix answers it when it can. */
void mpi_take_question(struct mpi_reader reader);

/* A rank that ends between MPI_Init and MPI_Finalize leaves the others waiting for ever, so this ends the step. */
void mpi_lost(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t infos, pmix_info_t results[], size_t result_count,
              pmix_event_notification_cbfunc_fn_t done, void *about);

#endif
