/* The PMIx server of a step on one node: tells its ranks who they are, and carries what they have for others to the servers of the other nodes, by the
   hub beside srun. It runs as the job's user, in the job's root and in the step's cgroup, with which it ends.

   mpi-server FOLDER: its own in the job's /tmp. The step is described by Slurm's variables. Its file 3 is a pipe from slurmstepd, which closes when the
   last task has ended; slurmstepd waits until its file 4 closes. libpmix calls the functions of `module` in a thread of its
   own; they only send. The main thread hears the hub and the tasks. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpi.h"
#include "mpi_frame.h"

#define RANKS_MAX 65536u
#define TRIES 3
#define ENDING 3

struct waiting {
    struct waiting *next;
    uint32_t id;
    pmix_modex_cbfunc_t answer;
    void *data;
};
struct question { /* of another node, until libpmix has the answer */
    uint32_t from, id;
};

static uint32_t node_count, node_number, task_count, own_count, *own; /* ranks */
static char *names[MPI_NODES_MAX], *ranks[MPI_NODES_MAX];
static uint32_t home[RANKS_MAX]; /* the node of each rank */
static bool has_finalized[RANKS_MAX];
static char **variables[RANKS_MAX];
static pmix_nspace_t space;
static int hub = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiting *waits;
static uint32_t last_id;

/* Tasks that wait for their variables go on without. */
static _Noreturn void give_up(void) {
    int file = open("failed", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)file;
    _exit(1);
}

static void post(struct mpi_bytes *frame) {
    pthread_mutex_lock(&lock);
    bool is_sent = mpi_send(hub, frame->data, frame->size) == 0;
    pthread_mutex_unlock(&lock);
    mpi_free(frame);
    if (!is_sent) give_up();
}

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

static void answer(uint32_t id, int status, const char *data, size_t size) {
    struct waiting *found = NULL;
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
    memcpy(copy, data, size);
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
        for (uint32_t rank = 0; rank < task_count; rank++)
            if (procs[i].rank == PMIX_RANK_WILDCARD || procs[i].rank == rank) is_in[home[rank]] = true;
    }
    for (uint32_t i = 0; i < node_count; i++) nodes += is_in[i];
    mpi_put_number(frame, nodes);
    for (uint32_t i = 0; i < node_count; i++)
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
        if (strncmp(procs[i].nspace, space, PMIX_MAX_NSLEN) != 0) return PMIX_ERR_NOT_SUPPORTED;
    if (size > MPI_FRAME_MAX / 2) return PMIX_ERR_OUT_OF_RESOURCE;
    size_t begin = mpi_begin(&frame, MPI_FENCE);
    mpi_put_number(&frame, wait_for(done, about));
    put_members(&frame, procs, count);
    mpi_put(&frame, data, size);
    mpi_end(&frame, begin);
    free(data);
    post(&frame);
    return PMIX_SUCCESS;
}

static pmix_status_t ask(const pmix_proc_t *proc, const pmix_info_t info[], size_t infos, pmix_modex_cbfunc_t done, void *about) {
    (void)info;
    (void)infos;
    if (strncmp(proc->nspace, space, PMIX_MAX_NSLEN) != 0 || proc->rank >= task_count) return PMIX_ERR_NOT_FOUND;
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_ASK);
    mpi_put_number(&frame, home[proc->rank]);
    mpi_put_number(&frame, wait_for(done, about));
    mpi_put_number(&frame, proc->rank);
    mpi_end(&frame, begin);
    post(&frame);
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
    post(&frame);
}

static void end_step(const char *text) {
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_ABORT);
    mpi_put_text(&frame, text);
    mpi_end(&frame, begin);
    post(&frame);
}

static pmix_status_t abort_step(const pmix_proc_t *proc, void *object, int status, const char message[], pmix_proc_t procs[], size_t count, pmix_op_cbfunc_t done, void *about) {
    (void)object;
    (void)procs;
    (void)count;
    (void)done;
    (void)about;
    char text[1024];
    snprintf(text, sizeof text, "rank %u on %s called MPI_Abort with %d%s%.800s", proc->rank, names[node_number], status, message && *message ? ": " : "", message ? message : "");
    has_finalized[proc->rank % RANKS_MAX] = true;
    end_step(text);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t infos, pmix_op_cbfunc_t done, void *about) {
    (void)object;
    (void)info;
    (void)infos;
    (void)done;
    (void)about;
    has_finalized[proc->rank % RANKS_MAX] = false;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *about) {
    (void)object;
    (void)done;
    (void)about;
    has_finalized[proc->rank % RANKS_MAX] = true;
    return PMIX_OPERATION_SUCCEEDED;
}

/* A rank that ends between MPI_Init and MPI_Finalize leaves the others waiting for ever. */
static void lost(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t infos, pmix_info_t results[], size_t result_count,
                 pmix_event_notification_cbfunc_fn_t done, void *about) {
    (void)handler;
    (void)status;
    (void)info;
    (void)infos;
    (void)results;
    (void)result_count;
    if (strncmp(source->nspace, space, PMIX_MAX_NSLEN) == 0 && source->rank < task_count && !has_finalized[source->rank]) {
        char text[256];
        has_finalized[source->rank] = true;
        snprintf(text, sizeof text, "rank %u on %s ended without MPI_Finalize; the other ranks would wait for it", source->rank, names[node_number]);
        end_step(text);
    }
    if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, about);
}

static pmix_server_module_t module = {
    .client_connected2 = connected,
    .client_finalized = finalized,
    .abort = abort_step,
    .fence_nb = fence,
    .direct_modex = ask,
};

static uint32_t number_of(const char *name, uint32_t most) {
    const char *text = getenv(name);
    char *end;
    unsigned long found = text && *text ? strtoul(text, &end, 10) : ~0UL;
    if (found > most || *end) give_up();
    return (uint32_t)found;
}

/* Tries every address of the hub: which of them this node reaches, it does not know. */
static int reach_hub(char *said) {
    char *rest = said, *key = strsep(&rest, " "), *port = strsep(&rest, " ");
    if (key == NULL || strlen(key) != MPI_KEY || port == NULL) give_up();
    for (int try = 0; try < TRIES; try++) {
        char *copy = strdup(rest ? rest : ""), *left = copy;
        for (char *address; (address = strsep(&left, " "));) {
            struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
            struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
            bool is_four = inet_pton(AF_INET, address, &four.sin_addr) == 1;
            if (!is_four && inet_pton(AF_INET6, address, &six.sin6_addr) != 1) continue;
            int made = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
            struct timeval limit = {10, 0};
            setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* for connect as well */
            if (connect(made, is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six, is_four ? sizeof four : sizeof six) == 0) {
                struct timeval none = {0, 0};
                setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
                free(copy);
                return made;
            }
            close(made);
        }
        free(copy);
    }
    give_up();
}

static void say_hello(const char *key) {
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_HELLO);
    mpi_put(&frame, key, MPI_KEY);
    mpi_put_number(&frame, node_count);
    mpi_put_number(&frame, node_number);
    mpi_put_text(&frame, getenv("SLURMD_NODENAME"));
    mpi_put_text(&frame, getenv("SLURM_GTIDS"));
    mpi_end(&frame, begin);
    post(&frame);
}

static void take_table(struct mpi_reader reader) {
    uint32_t *found = calloc(RANKS_MAX, sizeof *found);
    bool *is_known = calloc(RANKS_MAX, sizeof *is_known);
    uint32_t known = 0;
    if (found == NULL || is_known == NULL || mpi_get_number(&reader) != node_count) give_up();
    for (uint32_t i = 0; i < node_count; i++) {
        names[i] = strdup(mpi_get_text(&reader));
        ranks[i] = strdup(mpi_get_text(&reader));
        int count = reader.is_bad ? -1 : mpi_read_ranks(ranks[i], found, task_count);
        if (count <= 0) give_up();
        for (int j = 0; j < count; j++) {
            known += !is_known[found[j]];
            is_known[found[j]] = true;
            home[found[j]] = i;
        }
        if (i == node_number) {
            own_count = (uint32_t)count;
            own = memcpy(calloc(own_count, sizeof *own), found, own_count * sizeof *own);
        }
    }
    if (known != task_count) give_up();
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
    if (begun != PMIX_SUCCESS) give_up();
    pthread_mutex_lock(&done_lock);
    while (*state == 0) pthread_cond_wait(&done_signal, &done_lock);
    pthread_mutex_unlock(&done_lock);
    if (*state < 0) give_up();
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
    PMIX_INFO_LOAD(&facts[5], PMIX_HOSTNAME, names[node], PMIX_STRING);
    PMIX_INFO_LOAD(&facts[6], PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
    pmix_data_array_t *array = malloc(sizeof *array);
    *array = (pmix_data_array_t){.type = PMIX_INFO, .size = 7, .array = facts};
    PMIX_LOAD_KEY(entry->key, PMIX_PROC_DATA);
    entry->value.type = PMIX_DATA_ARRAY;
    entry->value.data.darray = array;
}

static char *joined(char **texts, const char *separator) {
    struct mpi_bytes all = {0};
    for (uint32_t i = 0; i < node_count; i++) {
        if (i) mpi_put(&all, separator, 1);
        mpi_put(&all, texts[i], strlen(texts[i]));
    }
    mpi_put(&all, "", 1);
    return all.data;
}

static void register_step(const char *folder) {
    char *node_map, *rank_map, *all_names = joined(names, ","), *all_ranks = joined(ranks, ";");
    uint32_t *list = calloc(task_count, sizeof *list);
    pmix_info_t *facts;
    size_t fixed = 12, at = 0, count = fixed + task_count;
    int state = 0;
    if (PMIx_generate_regex(all_names, &node_map) != PMIX_SUCCESS || PMIx_generate_ppn(all_ranks, &rank_map) != PMIX_SUCCESS) give_up();
    PMIX_INFO_CREATE(facts, count);
    uint32_t one = 1, leader = own[0];
    bool is_crowded = own_count > (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    PMIX_INFO_LOAD(&facts[at++], PMIX_JOB_SIZE, &task_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_UNIV_SIZE, &task_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_MAX_PROCS, &task_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NUM_NODES, &node_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_LOCAL_SIZE, &own_count, PMIX_UINT32);
    PMIX_INFO_LOAD(&facts[at++], PMIX_LOCAL_PEERS, ranks[node_number], PMIX_STRING);
    PMIX_INFO_LOAD(&facts[at++], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NODE_MAP, node_map, PMIX_REGEX);
    PMIX_INFO_LOAD(&facts[at++], PMIX_PROC_MAP, rank_map, PMIX_REGEX);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NSDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&facts[at++], PMIX_NODE_OVERSUBSCRIBED, &is_crowded, PMIX_BOOL); /* then ranks that wait give up the processor */
    for (uint32_t node = 0; node < node_count; node++) {
        int found = mpi_read_ranks(ranks[node], list, task_count);
        for (int i = 0; i < found; i++) add_rank(&facts[fixed + list[i]], list[i], (uint32_t)i, node);
    }
    await(PMIx_server_register_nspace(space, (int)own_count, facts, count, note_done, &state), &state);
    for (uint32_t i = 0; i < own_count; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, space, own[i]);
        state = 0;
        await(PMIx_server_register_client(&proc, getuid(), getgid(), NULL, note_done, &state), &state);
        if (PMIx_server_setup_fork(&proc, &variables[own[i]]) != PMIX_SUCCESS) give_up();
    }
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    state = 0;
    await(PMIx_Register_event_handler(&code, 1, NULL, 0, lost, note_handler, &state), &state);
}

/* A task asks by its rank, and gets its variables. */
static void serve(int control) {
    uint32_t rank, size;
    struct mpi_bytes text = {0}, sent = {0};
    struct timeval limit = {10, 0};
    int task = accept4(control, NULL, NULL, SOCK_CLOEXEC);
    if (task < 0) return;
    setsockopt(task, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(task, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (mpi_receive(task, &rank, sizeof rank) == 0 && (rank = ntohl(rank)) < task_count && variables[rank]) {
        for (char **each = variables[rank]; *each; each++)
            if (strncmp(*each, "PMIX_", 5) == 0 || strncmp(*each, "OMPI_", 5) == 0) mpi_put_text(&text, *each);
        size = htonl((uint32_t)text.size);
        mpi_put(&sent, &size, sizeof size);
        mpi_put(&sent, text.data, text.size);
        mpi_send(task, sent.data, sent.size);
    }
    mpi_free(&text);
    mpi_free(&sent);
    close(task);
}

static void hear_hub(struct mpi_bytes *in) {
    static char part[1 << 16];
    ssize_t got = recv(hub, part, sizeof part, 0);
    enum mpi_kind kind;
    const char *content;
    size_t size;
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) give_up(); /* srun is gone, and the step ends */
    mpi_put(in, part, (size_t)got);
    for (int found; (found = mpi_next(in, MPI_FRAME_MAX, &kind, &content, &size)) != 0; mpi_drop(in, size)) {
        struct mpi_reader reader = mpi_read(content, size);
        if (found < 0) give_up();
        if (kind == MPI_TABLE && own == NULL) {
            take_table(reader);
        } else if (kind == MPI_FENCED || kind == MPI_ANSWER) {
            if (kind == MPI_ANSWER) mpi_get_number(&reader); /* who answers */
            uint32_t id = mpi_get_number(&reader);
            int status = (int)mpi_get_number(&reader);
            if (reader.is_bad) give_up();
            answer(id, status, reader.at, (size_t)(reader.end - reader.at));
        } else if (kind == MPI_ASK) {
            struct question *question = malloc(sizeof *question);
            pmix_proc_t proc;
            if (question == NULL) abort();
            question->from = mpi_get_number(&reader);
            question->id = mpi_get_number(&reader);
            uint32_t rank = mpi_get_number(&reader);
            if (reader.is_bad) give_up();
            PMIX_LOAD_PROCID(&proc, space, rank);
            pmix_status_t begun = PMIx_server_dmodex_request(&proc, have_answer, question);
            if (begun != PMIX_SUCCESS) have_answer(begun, NULL, 0, question);
        }
    }
}

static int listen_at(const char *folder) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", folder) >= sizeof address.sun_path) give_up();
    if (made < 0 || bind(made, (struct sockaddr *)&address, sizeof address) < 0 || listen(made, SOMAXCONN) < 0) give_up();
    return made;
}

int main(int count, char **words) {
    static struct mpi_bytes in;
    pmix_info_t *facts;
    pmix_rank_t rank;
    if (count != 2 || chdir(words[1]) < 0) return 2;
    const char *log = getenv("SLIPWAY_MPI_LOG");
    if (log && (freopen(log, "a", stderr) == NULL)) return 2;
    char *said = strdup(getenv(ROOT_MPI_HUB) ? getenv(ROOT_MPI_HUB) : "");
    node_count = number_of("SLURM_STEP_NUM_NODES", MPI_NODES_MAX);
    node_number = number_of("SLURM_NODEID", node_count - 1);
    task_count = number_of("SLURM_STEP_NUM_TASKS", RANKS_MAX);
    snprintf(space, sizeof space, "slurm.%u.%u", number_of("SLURM_JOB_ID", ~0U), number_of("SLURM_STEP_ID", ~0U));
    if (getenv("SLURMD_NODENAME") == NULL || getenv("SLURM_GTIDS") == NULL) give_up();
    int control = listen_at(words[1]);
    hub = reach_hub(said);
    say_hello(said); /* the others wait for it: libpmix starts meanwhile */
    rank = node_number;
    PMIX_INFO_CREATE(facts, 4);
    PMIX_INFO_LOAD(&facts[0], PMIX_SERVER_TMPDIR, words[1], PMIX_STRING);
    PMIX_INFO_LOAD(&facts[1], PMIX_SYSTEM_TMPDIR, words[1], PMIX_STRING);
    PMIX_INFO_LOAD(&facts[2], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&facts[3], PMIX_HOSTNAME, getenv("SLURMD_NODENAME"), PMIX_STRING);
    if (PMIx_server_init(&module, facts, 4) != PMIX_SUCCESS) give_up();
    while (own == NULL) hear_hub(&in);
    register_step(words[1]);
    for (;;) {
        struct pollfd watched[] = {{hub, POLLIN, 0}, {control, POLLIN, 0}, {ENDING, POLLIN, 0}};
        if (poll(watched, 3, -1) < 0 && errno != EINTR) give_up();
        if (watched[2].revents) _exit(0);
        if (watched[0].revents) hear_hub(&in);
        if (watched[1].revents) serve(control);
    }
}
