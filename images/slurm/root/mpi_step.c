#include "mpi_step.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_link.h"

struct mpi_step step;

void mpi_need(pmix_status_t status, const char *what) {
    if (status != PMIX_SUCCESS) mpi_give_up("libpmix refused %s: %s", what, PMIx_Error_string(status));
}

static uint32_t number_of(const char *name, uint32_t most) {
    const char *text = getenv(name);
    char *end;
    unsigned long found = text && *text ? strtoul(text, &end, 10) : ~0UL;
    if (found > most || *end) mpi_give_up("%s is %s, and may be %u at most", name, text ? text : "not set", most);
    return (uint32_t)found;
}

void mpi_read_step(void) {
    step.node_count = number_of("SLURM_STEP_NUM_NODES", MPI_NODES_MAX);
    step.node_number = number_of("SLURM_NODEID", step.node_count - 1);
    step.task_count = number_of("SLURM_STEP_NUM_TASKS", MPI_RANKS_MAX);
    snprintf(step.space, sizeof step.space, "slurm.%u.%u", number_of("SLURM_JOB_ID", ~0U), number_of("SLURM_STEP_ID", ~0U));
}

void mpi_take_table(struct mpi_reader reader) {
    uint32_t *found = calloc(MPI_RANKS_MAX, sizeof *found);
    bool *is_known = calloc(MPI_RANKS_MAX, sizeof *is_known);
    uint32_t known = 0;
    if (found == NULL || is_known == NULL || mpi_get_number(&reader) != step.node_count) mpi_give_up("the table of nodes is of another step");
    for (uint32_t i = 0; i < step.node_count; i++) {
        step.names[i] = strdup(mpi_get_text(&reader));
        step.ranks[i] = strdup(mpi_get_text(&reader));
        int count = reader.is_bad ? -1 : mpi_read_ranks(step.ranks[i], found, step.task_count);
        if (count <= 0) mpi_give_up("node %u of the step has no tasks that are known", i);
        for (int j = 0; j < count; j++) {
            known += !is_known[found[j]];
            is_known[found[j]] = true;
            step.home[found[j]] = i;
        }
        if (i == step.node_number) {
            step.own_count = (uint32_t)count;
            step.own = memcpy(calloc(step.own_count, sizeof *step.own), found, step.own_count * sizeof *step.own);
        }
    }
    if (known != step.task_count) mpi_give_up("%u of the step's %u tasks are on no node", step.task_count - known, step.task_count);
    free(found);
    free(is_known);
}

static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_signal = PTHREAD_COND_INITIALIZER;

static void note_done(pmix_status_t status, void *about) {
    pthread_mutex_lock(&done_lock);
    *(int *)about = status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED ? 1 : -1;
    pthread_cond_broadcast(&done_signal);
    pthread_mutex_unlock(&done_lock);
}

static void await(pmix_status_t begun, int *state) {
    if (begun == PMIX_OPERATION_SUCCEEDED) return;
    mpi_need(begun, "the step");
    pthread_mutex_lock(&done_lock);
    while (*state == 0) pthread_cond_wait(&done_signal, &done_lock);
    pthread_mutex_unlock(&done_lock);
    if (*state < 0) mpi_give_up("libpmix refused the step");
}

static void note_handler(pmix_status_t status, size_t handler, void *about) {
    (void)handler;
    note_done(status, about);
}

/* What every rank of one node is told of itself. */
static void add_rank(pmix_info_t *entry, uint32_t rank, uint32_t place, uint32_t node) {
    pmix_info_t *facts;
    uint16_t local = (uint16_t)place;
    uint32_t application = 0;
    PMIX_INFO_CREATE(facts, 7);
    PMIX_INFO_LOAD(&facts[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&facts[1], PMIX_APPNUM, &application, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[2], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&facts[3], PMIX_NODE_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&facts[4], PMIX_NODEID, &node, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[5], PMIX_HOSTNAME, step.names[node], PMIX_STRING);
    PMIX_INFO_LOAD(&facts[6], PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
    pmix_data_array_t *array = malloc(sizeof *array);
    *array = (pmix_data_array_t){.type = PMIX_INFO, .size = 7, .array = facts};
    PMIX_LOAD_KEY(entry->key, PMIX_PROC_DATA);
    entry->value.type = PMIX_DATA_ARRAY;
    entry->value.data.darray = array;
}

static char *joined(char **texts, const char *separator) {
    struct mpi_bytes all = {0};
    for (uint32_t i = 0; i < step.node_count; i++) {
        if (i) mpi_put(&all, separator, 1);
        mpi_put(&all, texts[i], strlen(texts[i]));
    }
    mpi_put(&all, "", 1);
    return all.data;
}

void mpi_register_step(const char *folder, pmix_notification_fn_t lost) {
    char *node_map, *rank_map, *all_names = joined(step.names, ","), *all_ranks = joined(step.ranks, ";");
    uint32_t *list = calloc(step.task_count, sizeof *list);
    pmix_info_t *facts;
    size_t fixed = 12, at = 0, count = fixed + step.task_count;
    int state = 0;
    mpi_need(PMIx_generate_regex(all_names, &node_map), "the names of the nodes");
    mpi_need(PMIx_generate_ppn(all_ranks, &rank_map), "the ranks of the nodes");
    PMIX_INFO_CREATE(facts, count);
    uint32_t one = 1, leader = step.own[0];
    bool is_crowded = step.own_count > (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    PMIX_INFO_LOAD(&facts[at++], PMIX_JOB_SIZE, &step.task_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_UNIV_SIZE, &step.task_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_MAX_PROCS, &step.task_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NUM_NODES, &step.node_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_LOCAL_SIZE, &step.own_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_LOCAL_PEERS, step.ranks[step.node_number], PMIX_STRING);
    PMIX_INFO_LOAD(&facts[at++], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NODE_MAP, node_map, PMIX_REGEX);
    PMIX_INFO_LOAD(&facts[at++], PMIX_PROC_MAP, rank_map, PMIX_REGEX);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NSDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NODE_OVERSUBSCRIBED, &is_crowded, PMIX_BOOL); /* then ranks that wait give up the processor */
    for (uint32_t node = 0; node < step.node_count; node++) {
        int found = mpi_read_ranks(step.ranks[node], list, step.task_count);
        for (int i = 0; i < found; i++) add_rank(&facts[fixed + list[i]], list[i], (uint32_t)i, node);
    }
    await(PMIx_server_register_nspace(step.space, (int)step.own_count, facts, count, note_done, &state), &state);
    for (uint32_t i = 0; i < step.own_count; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, step.space, step.own[i]);
        state = 0;
        await(PMIx_server_register_client(&proc, getuid(), getgid(), NULL, note_done, &state), &state);
        mpi_need(PMIx_server_setup_fork(&proc, &step.variables[step.own[i]]), "the variables of a task");
    }
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    state = 0;
    await(PMIx_Register_event_handler(&code, 1, NULL, 0, lost, note_handler, &state), &state);
}
