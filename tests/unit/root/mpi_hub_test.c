/* When the hub beside srun sends the table of nodes, and what it tells them where there will be none. */
#define main hub_main
#include "mpi_hub.c"
#undef main
#include "mpi_frame.c"

#include <netinet/in.h>
#include <sys/wait.h>

#include "harness.h"
#include "owned.h"

const struct fuzz fuzzes[] = {{0}};

static void begin(struct node *pair) {
    strcpy(key, "0123456789abcdef0123456789abcdef");
    for (uint32_t i = 0; i < wanted; i++) {
        free(about[i]);
        about[i] = NULL;
        members[i] = NULL;
        has_left[i] = false;
    }
    free(failure);
    failure = NULL;
    has_table = false;
    wanted = 0;
    for (int i = 0; i < 2; i++) {
        mpi_free(&pair[i].out);
        pair[i] = (struct node){.socket = -1};
    }
}

static bool hello(struct node *pair, uint32_t number, const char *shown) {
    struct mpi_bytes said = {0};
    mpi_put(&said, shown, MPI_KEY);
    mpi_put_number(&said, 2);
    mpi_put_number(&said, number);
    mpi_put_text(&said, number ? "gpu-1" : "gpu-0");
    mpi_put_text(&said, number ? "1" : "0");
    bool is_taken = take(&pair[number], MPI_HELLO, said.data, said.size);
    mpi_free(&said);
    return is_taken;
}

static bool ready(struct node *node) { return take(node, MPI_READY, "", 0); }

/* What the hub has for the node: the frame's kind, 0 for none; its text where that is a failure. */
static int heard(struct node *node, const char **text) {
    enum mpi_kind kind;
    const char *content;
    size_t size;
    if (mpi_next(&node->out, MPI_FRAME_MAX, &kind, &content, &size) != 1) return 0;
    *text = content;
    return (int)kind;
}

static int connect_to(const struct sockaddr_in *address) {
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(made >= 0 && connect(made, (const struct sockaddr *)address, sizeof *address) == 0);
    return made;
}

/* The hub itself, as a child, with the key in its standard input; gives that pipe's other end. */
static int start_hub(struct sockaddr_in *address) {
    int ends[2], listening = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof *address;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(listening >= 0 && bind(listening, (struct sockaddr *)address, size) == 0 && listen(listening, 256) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)address, &size) == 0 && pipe2(ends, O_CLOEXEC) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        if (listening != LISTENER) dup2(listening, LISTENER);
        close_range(LISTENER + 1, ~0U, 0);
        _exit(hub_main());
    }
    close(listening);
    close(ends[0]);
    CHECK(write(ends[1], "0123456789abcdef0123456789abcdef", MPI_KEY) == MPI_KEY);
    return ends[1];
}

/* The only node of a step: what it hears first. */
static int meet(int hub, const char *shown) {
    struct mpi_bytes said = {0}, heard = {0};
    enum mpi_kind kind;
    const char *content;
    size_t size, begin = mpi_begin(&said, MPI_HELLO);
    char part[4096];
    mpi_put(&said, shown, MPI_KEY);
    mpi_put_number(&said, 1);
    mpi_put_number(&said, 0);
    mpi_put_text(&said, "gpu-0");
    mpi_put_text(&said, "0");
    mpi_end(&said, begin);
    mpi_end(&said, mpi_begin(&said, MPI_READY));
    CHECK(send(hub, said.data, said.size, MSG_NOSIGNAL) == (ssize_t)said.size);
    int found = 0;
    for (ssize_t got; found == 0 && (got = recv(hub, part, sizeof part, 0)) > 0; found = mpi_next(&heard, MPI_FRAME_MAX, &kind, &content, &size))
        mpi_put(&heard, part, (size_t)got);
    mpi_free(&said);
    mpi_free(&heard);
    return found == 1 ? (int)kind : 0;
}

/* However many strangers come, and whatever they say or do not say. */
static void check_strangers(void) {
    struct sockaddr_in address;
    int strangers[4 * STRANGERS_MAX], hub = start_hub(&address);
    char byte;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        strangers[i] = connect_to(&address);
        if (i % 2) send(strangers[i], "\0", 1, MSG_NOSIGNAL);
    }
    owned_fd forger = connect_to(&address), node = connect_to(&address);
    CHECK(meet(forger, "0123456789abcdef0123456789abcdeF") == 0);
    CHECK(meet(node, "0123456789abcdef0123456789abcdef") == MPI_TABLE);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        CHECK(recv(strangers[i], &byte, 1, 0) <= 0); /* each is dropped in the end, also when no more come */
        close(strangers[i]);
    }
    close(hub);
    CHECK(waitpid(-1, NULL, 0) > 0 && recv(node, &byte, 1, 0) == 0);
}

void check(void) {
    check_strangers();
    struct node pair[2] = {0};
    const char *text;

    begin(pair);
    CHECK(!ready(&pair[0]) && !hello(pair, 0, "0123456789abcdef0123456789abcdeF"));
    CHECK(hello(pair, 0, key) && !hello(pair, 0, key) && hello(pair, 1, key) && ready(&pair[0]) && !ready(&pair[0]));
    CHECK(heard(&pair[0], &text) == 0 && ready(&pair[1]));
    CHECK(heard(&pair[0], &text) == MPI_TABLE && heard(&pair[1], &text) == MPI_TABLE);
    size_t size = pair[0].out.size;
    leave(&pair[1]);
    CHECK(failure == NULL && pair[0].out.size == size); /* the ranks have their servers now, and hear of it by their fences */

    begin(pair); /* a server that cannot start */
    CHECK(hello(pair, 0, key) && ready(&pair[0]) && hello(pair, 1, key));
    leave(&pair[1]);
    CHECK(heard(&pair[0], &text) == MPI_FAILED && strcmp(text, "the PMIx server of gpu-1 ended") == 0);

    begin(pair); /* one that says why */
    CHECK(hello(pair, 0, key) && hello(pair, 1, key) && take(&pair[1], MPI_FAILED, "gpu-1: no", 10) && ready(&pair[0]));
    CHECK(heard(&pair[0], &text) == MPI_FAILED && strcmp(text, "gpu-1: no") == 0);

    begin(pair); /* a node that does not come in time, and comes later */
    CHECK(hello(pair, 0, key) && ready(&pair[0]));
    fail_late();
    CHECK(heard(&pair[0], &text) == 0);
    deadline = now_s();
    fail_late();
    CHECK(heard(&pair[0], &text) == MPI_FAILED && strstr(text, "1 of the step's 2 nodes "));
    CHECK(hello(pair, 1, key) && ready(&pair[1]) && heard(&pair[1], &text) == MPI_FAILED);
    begin(pair);
}
