/* The PMIx server of a step on one node: tells its ranks who they are (mpi_step.c), and carries what they have for others to the servers of the other
   nodes (mpi_modex.c), by the hub beside srun. It runs as the job's user, in the job's root and in the step's cgroup, with which it ends.

   mpi-server FOLDER: its own in the job's /tmp. The step is described by Slurm's variables. Its file 3 is a pipe from slurmstepd, which closes when the
   last task has ended; slurmstepd waits until its file 4 closes. File 5 is the connection to the hub, which knows the node already (mpi.c). File 6
   closes when the server ends: the node's first task waits for that. libpmix calls in a thread of its own; the main thread hears the hub and the
   tasks. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpi_link.h"
#include "mpi_modex.h"
#include "mpi_step.h"
#include "mpi_why.h"

#define ENDING 3
#define HUB 5

/* A task asks by its rank, and gets its variables. */
static void serve(int control) {
    uint32_t rank, size;
    struct mpi_bytes text = {0}, sent = {0};
    struct timeval limit = {10, 0};
    int task = accept4(control, NULL, NULL, SOCK_CLOEXEC);
    if (task < 0) return;
    setsockopt(task, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(task, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (mpi_receive(task, &rank, sizeof rank) == 0 && (rank = ntohl(rank)) < step.task_count && step.variables[rank]) {
        for (char **each = step.variables[rank]; *each; each++)
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
    ssize_t got = recv(HUB, part, sizeof part, 0);
    enum mpi_kind kind;
    const char *content;
    size_t size;
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) mpi_give_up("srun is gone");
    mpi_put(in, part, (size_t)got);
    for (int found; (found = mpi_next(in, MPI_FRAME_MAX, &kind, &content, &size)) != 0; mpi_drop(in, size)) {
        struct mpi_reader reader = mpi_read(content, size);
        if (found < 0) mpi_give_up("srun sent more than fits");
        if (kind == MPI_TABLE && step.own == NULL) {
            mpi_take_table(reader);
        } else if (kind == MPI_FAILED) {
            mpi_why_write(".", mpi_get_text(&reader));
            _exit(1);
        } else if (kind == MPI_FENCED) {
            mpi_take_answer(reader);
        } else if (kind == MPI_ANSWER) {
            mpi_get_number(&reader); /* who answers */
            mpi_take_answer(reader);
        } else if (kind == MPI_ASK) {
            mpi_take_question(reader);
        }
    }
}

static int listen_at(const char *folder) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", folder) >= sizeof address.sun_path) mpi_give_up("%s is too long", folder);
    if (made < 0 || bind(made, (struct sockaddr *)&address, sizeof address) < 0 || listen(made, SOMAXCONN) < 0)
        mpi_give_up("cannot listen at %s: %s", address.sun_path, strerror(errno));
    return made;
}

static void start_libpmix(const char *folder, const char *node) {
    pmix_info_t *facts;
    pmix_rank_t rank = step.node_number;
    PMIX_INFO_CREATE(facts, 4);
    PMIX_INFO_LOAD(&facts[0], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&facts[1], PMIX_SYSTEM_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&facts[2], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&facts[3], PMIX_HOSTNAME, node, PMIX_STRING);
    mpi_need(PMIx_server_init(&mpi_module, facts, 4), "to start");
}

static void say_ready(void) {
    struct mpi_bytes frame = {0};
    mpi_end(&frame, mpi_begin(&frame, MPI_READY));
    mpi_post(&frame);
}

int main(int count, char **words) {
    static struct mpi_bytes in;
    const char *node = getenv("SLURMD_NODENAME");
    if (count != 2 || node == NULL || chdir(words[1]) < 0) return 2;
    mpi_open_link(HUB, node);
    mpi_read_step();
    int control = listen_at(words[1]);
    start_libpmix(words[1], node);
    say_ready();
    while (step.own == NULL) hear_hub(&in);
    mpi_register_step(words[1], mpi_lost);
    for (;;) {
        struct pollfd watched[] = {{HUB, POLLIN, 0}, {control, POLLIN, 0}, {ENDING, POLLIN, 0}};
        if (poll(watched, 3, -1) < 0 && errno != EINTR) mpi_give_up("poll: %s", strerror(errno));
        if (watched[2].revents) _exit(0);
        if (watched[0].revents) hear_hub(&in);
        if (watched[1].revents) serve(control);
    }
}
