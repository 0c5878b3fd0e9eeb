#include "mpi_modex.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_link.h"
#include "mpi_step.h"

struct waiting {
    struct waiting *next;
    uint32_t id;
    pmix_modex_cbfunc_t answer;
    void *data;
};
struct question { /* of another node, until libpmix has the answer */
    uint32_t from, id;
};

static bool has_finalized[MPI_RANKS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiting *waits;
static uint32_t last_id;

static uint32_t wait_for(pmix_modex_cbfunc_t answer, void *data) {
    struct waiting *made = malloc(sizeof *made);
    if (made == NULL) abort();
    pthread_mutex_lock(&lock);
    *made = (struct waiting){waits, ++last_id, answer, data};
    waits = made;
    pthread_mutex_unlock(&lock);
    return made->id;
}

static void release(void *data) { free(data); }

void mpi_take_answer(struct mpi_reader reader) {
    uint32_t id = mpi_get_number(&reader);
    int status = (int)mpi_get_number(&reader);
    size_t size = (size_t)(reader.end - reader.at);
    struct waiting *found = NULL;
    if (reader.is_bad) mpi_give_up("srun sent an answer that is cut off");
    pthread_mutex_lock(&lock);
    for (struct waiting **place = &waits; *place; place = &(*place)->next) {
        if ((*place)->id != id) continue;
        found = *place;
        *place = found->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL) return;
    char *copy = malloc(size ? size : 1);
    if (copy == NULL) abort();
    memcpy(copy, reader.at, size);
    found->answer(status, copy, size, found->data, release, copy);
    free(found);
}

/* What a fence is called, the same on all nodes: who is in it. And the nodes that these are on. */
static void put_members(struct mpi_bytes *frame, const pmix_proc_t *procs, size_t count) {
    bool is_in[MPI_NODES_MAX] = {0};
    uint32_t nodes = 0;
    struct mpi_bytes name = {0};
    for (size_t i = 0; i < count; i++) {
        mpi_put_number(&name, procs[i].rank);
        for (uint32_t rank = 0; rank < step.task_count; rank++)
            if (procs[i].rank == PMIX_RANK_WILDCARD || procs[i].rank == rank) is_in[step.home[rank]] = true;
    }
    for (uint32_t i = 0; i < step.node_count; i++) nodes += is_in[i];
    mpi_put_number(frame, nodes);
    for (uint32_t i = 0; i < step.node_count; i++)
        if (is_in[i]) mpi_put_number(frame, i);
    mpi_put_number(frame, (uint32_t)name.size);
    mpi_put(frame, name.data, name.size);
    mpi_free(&name);
}

static pmix_status_t fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t infos, char *data, size_t size, pmix_modex_cbfunc_t done, void *about) {
    (void)info;
    (void)infos;
    struct mpi_bytes frame = {0};
    for (size_t i = 0; i < count; i++)
        if (strncmp(procs[i].nspace, step.space, PMIX_MAX_NSLEN) != 0) return PMIX_ERR_NOT_SUPPORTED;
    if (size > MPI_FRAME_MAX / 2) return PMIX_ERR_OUT_OF_RESOURCE;
    size_t begin = mpi_begin(&frame, MPI_FENCE);
    mpi_put_number(&frame, wait_for(done, about));
    put_members(&frame, procs, count);
    mpi_put(&frame, data, size);
    mpi_end(&frame, begin);
    free(data);
    mpi_post(&frame);
    return PMIX_SUCCESS;
}

static pmix_status_t ask(const pmix_proc_t *proc, const pmix_info_t info[], size_t infos, pmix_modex_cbfunc_t done, void *about) {
    (void)info;
    (void)infos;
    if (strncmp(proc->nspace, step.space, PMIX_MAX_NSLEN) != 0 || proc->rank >= step.task_count) return PMIX_ERR_NOT_FOUND;
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_ASK);
    mpi_put_number(&frame, step.home[proc->rank]);
    mpi_put_number(&frame, wait_for(done, about));
    mpi_put_number(&frame, proc->rank);
    mpi_end(&frame, begin);
    mpi_post(&frame);
    return PMIX_SUCCESS;
}

static void have_answer(pmix_status_t status, char *data, size_t size, void *about) {
    struct question *question = about;
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_ANSWER);
    mpi_put_number(&frame, question->from);
    mpi_put_number(&frame, question->id);
    mpi_put_number(&frame, (uint32_t)status);
    mpi_put(&frame, data, data ? size : 0);
    mpi_end(&frame, begin);
    free(question);
    mpi_post(&frame);
}

void mpi_take_question(struct mpi_reader reader) {
    struct question *question = malloc(sizeof *question);
    pmix_proc_t proc;
    if (question == NULL) abort();
    question->from = mpi_get_number(&reader);
    question->id = mpi_get_number(&reader);
    uint32_t rank = mpi_get_number(&reader);
    if (reader.is_bad) mpi_give_up("srun sent a question that is cut off");
    PMIX_LOAD_PROCID(&proc, step.space, rank);
    pmix_status_t begun = PMIx_server_dmodex_request(&proc, have_answer, question);
    if (begun != PMIX_SUCCESS) have_answer(begun, NULL, 0, question);
}

static void end_step(const char *text) {
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_ABORT);
    mpi_put_text(&frame, text);
    mpi_end(&frame, begin);
    mpi_post(&frame);
}

static pmix_status_t abort_step(const pmix_proc_t *proc, void *object, int status, const char message[], pmix_proc_t procs[], size_t count, pmix_op_cbfunc_t done, void *about) {
    (void)object;
    (void)procs;
    (void)count;
    (void)done;
    (void)about;
    char text[1024];
    snprintf(text, sizeof text, "rank %u on %s called MPI_Abort with %d%s%.800s", proc->rank, step.names[step.node_number], status, message && *message ? ": " : "", message ? message : "");
    has_finalized[proc->rank % MPI_RANKS_MAX] = true;
    end_step(text);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t infos, pmix_op_cbfunc_t done, void *about) {
    (void)object;
    (void)info;
    (void)infos;
    (void)done;
    (void)about;
    has_finalized[proc->rank % MPI_RANKS_MAX] = false;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *about) {
    (void)object;
    (void)done;
    (void)about;
    has_finalized[proc->rank % MPI_RANKS_MAX] = true;
    return PMIX_OPERATION_SUCCEEDED;
}

void mpi_lost(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t infos, pmix_info_t results[], size_t result_count,
              pmix_event_notification_cbfunc_fn_t done, void *about) {
    (void)handler;
    (void)status;
    (void)info;
    (void)infos;
    (void)results;
    (void)result_count;
    if (strncmp(source->nspace, step.space, PMIX_MAX_NSLEN) == 0 && source->rank < step.task_count && !has_finalized[source->rank]) {
        char text[256];
        has_finalized[source->rank] = true;
        snprintf(text, sizeof text, "rank %u on %s ended without MPI_Finalize; the other ranks would wait for it", source->rank, step.names[step.node_number]);
        end_step(text);
    }
    if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, about);
}

pmix_server_module_t mpi_module = {
    .client_connected2 = connected,
    .client_finalized = finalized,
    .abort = abort_step,
    .fence_nb = fence,
    .direct_modex = ask,
};
