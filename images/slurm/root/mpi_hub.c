/* The hub of a step's MPI: a child of srun that passes on what the nodes' servers have for each other. It ends with srun, whose end of the pipe on
   standard input closes then. The key of the step comes by this pipe, as others see command lines and environments; the socket that it listens on is
   its file 3. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mpi_frame.h"

#define LISTENER 3
#define STRANGERS_MAX 64 /* connections that have not shown the key; where there are more, the oldest goes */
#define STRANGER_MS 1000 /* and so does each after that time: a node shows the key as soon as it is connected */
#define STRANGER_LEAST_MS 100 /* that each has had before it goes for another */
#define LOST (-25)       /* PMIX_ERR_UNREACH */
#define TABLE_S 15       /* from the first node to the last: nodes that do not reach srun find out sooner (mpi.h), and cannot tell the others */

struct node {
    int socket; /* -1: gone, or not there yet */
    long long came_ms;
    bool is_known, is_ready;
    uint32_t number;
    struct mpi_bytes in, out;
};

struct fence {
    struct fence *next;
    struct mpi_bytes name, data;
    uint32_t count, came, *members, *ids;
    bool *has_come;
};

static char key[MPI_KEY + 1];
static struct node *nodes[MPI_NODES_MAX + STRANGERS_MAX];
static size_t node_count;
static uint32_t wanted; /* nodes of the step; 0 until the first says it */
static struct node *members[MPI_NODES_MAX];
static char *about[MPI_NODES_MAX]; /* name and ranks, each with its end */
static size_t about_size[MPI_NODES_MAX];
static bool has_left[MPI_NODES_MAX];
static struct fence *fences;
static bool has_table;
static char *failure; /* why there will be no table */
static time_t deadline;

static void *grab(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory == NULL) abort();
    return memory;
}

static void reply_fence(uint32_t number, uint32_t id, int status, const struct mpi_bytes *data) {
    if (members[number] == NULL) return;
    struct mpi_bytes *out = &members[number]->out;
    size_t begin = mpi_begin(out, MPI_FENCED);
    mpi_put_number(out, id);
    mpi_put_number(out, (uint32_t)status);
    if (data) mpi_put(out, data->data, data->size);
    mpi_end(out, begin);
}

static void end_fence(struct fence **place, int status) {
    struct fence *fence = *place;
    for (uint32_t i = 0; i < fence->count; i++)
        if (fence->has_come[i]) reply_fence(fence->members[i], fence->ids[i], status, status ? NULL : &fence->data);
    *place = fence->next;
    mpi_free(&fence->name);
    mpi_free(&fence->data);
    free(fence->members);
    free(fence->ids);
    free(fence->has_come);
    free(fence);
}

static int place_of(const struct fence *fence, uint32_t number) {
    for (uint32_t i = 0; i < fence->count; i++)
        if (fence->members[i] == number) return (int)i;
    return -1;
}

static bool take_fence(uint32_t number, struct mpi_reader reader) {
    uint32_t id = mpi_get_number(&reader), count = mpi_get_number(&reader);
    const char *list = reader.at;
    for (uint32_t i = 0; i < count && !reader.is_bad; i++) {
        if (mpi_get_number(&reader) >= wanted) return false;
    }
    uint32_t name_size = mpi_get_number(&reader);
    const char *name = mpi_get(&reader, name_size);
    if (reader.is_bad || count == 0 || count > wanted) return false;
    size_t data_size = (size_t)(reader.end - reader.at);
    struct fence **place = &fences;
    for (; *place; place = &(*place)->next) { /* the oldest of the name that waits for this node */
        struct fence *fence = *place;
        int at = place_of(fence, number);
        if (fence->name.size == name_size && memcmp(fence->name.data, name, name_size) == 0 && at >= 0 && !fence->has_come[at]) break;
    }
    if (*place == NULL) {
        struct fence *made = grab(1, sizeof *made);
        made->count = count;
        made->members = grab(count, sizeof *made->members);
        made->ids = grab(count, sizeof *made->ids);
        made->has_come = grab(count, sizeof *made->has_come);
        struct mpi_reader again = mpi_read(list, (size_t)count * sizeof(uint32_t));
        for (uint32_t i = 0; i < count; i++) made->members[i] = mpi_get_number(&again);
        mpi_put(&made->name, name, name_size);
        *place = made;
        if (place_of(made, number) < 0) return false;
    }
    struct fence *fence = *place;
    int at = place_of(fence, number);
    fence->has_come[at] = true;
    fence->ids[at] = id;
    fence->came++;
    mpi_put(&fence->data, reader.at, data_size);
    bool is_lost = false;
    for (uint32_t i = 0; i < fence->count; i++) is_lost |= has_left[fence->members[i]] && !fence->has_come[i];
    if (fence->came == fence->count) end_fence(place, 0);
    else if (is_lost || fence->data.size > MPI_FRAME_MAX / 2) end_fence(place, LOST);
    return true;
}

static bool pass_on(uint32_t from, enum mpi_kind kind, struct mpi_reader reader) {
    uint32_t to = mpi_get_number(&reader), id = mpi_get_number(&reader);
    if (reader.is_bad || to >= wanted) return false;
    if (members[to]) {
        struct mpi_bytes *out = &members[to]->out;
        size_t begin = mpi_begin(out, kind);
        mpi_put_number(out, from);
        mpi_put_number(out, id);
        mpi_put(out, reader.at, (size_t)(reader.end - reader.at));
        mpi_end(out, begin);
    } else if (kind == MPI_ASK && members[from]) {
        struct mpi_bytes *out = &members[from]->out;
        size_t begin = mpi_begin(out, MPI_ANSWER);
        mpi_put_number(out, to);
        mpi_put_number(out, id);
        mpi_put_number(out, (uint32_t)LOST);
        mpi_end(out, begin);
    }
    return true;
}

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static time_t now_s(void) { return (time_t)(now_ms() / 1000); }

static void tell_failure(struct mpi_bytes *out) {
    size_t begin = mpi_begin(out, MPI_FAILED);
    mpi_put_text(out, failure);
    mpi_end(out, begin);
}

/* No node's tasks wait for the table any more. */
static void fail(const char *format, ...) {
    va_list arguments;
    if (has_table || failure) return;
    va_start(arguments, format);
    if (vasprintf(&failure, format, arguments) < 0) abort();
    va_end(arguments);
    for (uint32_t i = 0; i < wanted; i++)
        if (members[i]) tell_failure(&members[i]->out);
}

static void fail_late(void) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < wanted; i++) ready += members[i] && members[i]->is_ready;
    if (now_s() >= deadline) fail("%u of the step's %u nodes had no PMIx server that reached srun within %d s", wanted - ready, wanted, TABLE_S);
}

static void send_tables(void) {
    for (uint32_t i = 0; i < wanted; i++)
        if (members[i] == NULL || !members[i]->is_ready) return;
    has_table = true;
    for (uint32_t i = 0; i < wanted; i++) {
        struct mpi_bytes *out = &members[i]->out;
        size_t begin = mpi_begin(out, MPI_TABLE);
        mpi_put_number(out, wanted);
        for (uint32_t j = 0; j < wanted; j++) mpi_put(out, about[j], about_size[j]);
        mpi_end(out, begin);
    }
}

static bool take_hello(struct node *node, struct mpi_reader reader) {
    const char *shown = mpi_get(&reader, MPI_KEY);
    unsigned char differs = 0;
    if (reader.is_bad) return false;
    for (size_t i = 0; i < MPI_KEY; i++) differs |= (unsigned char)(shown[i] ^ key[i]);
    uint32_t count = mpi_get_number(&reader), number = mpi_get_number(&reader);
    const char *rest = reader.at;
    mpi_get_text(&reader);
    mpi_get_text(&reader);
    if (differs || reader.is_bad || count == 0 || count > MPI_NODES_MAX || number >= count) return false;
    if (wanted == 0) {
        wanted = count;
        deadline = now_s() + TABLE_S;
    }
    if (count != wanted || about[number]) return false;
    about_size[number] = (size_t)(reader.at - rest);
    about[number] = grab(1, about_size[number]);
    memcpy(about[number], rest, about_size[number]);
    node->is_known = true;
    node->number = number;
    members[number] = node;
    if (failure) tell_failure(&node->out);
    return true;
}

static bool take_abort(struct mpi_reader reader) {
    const char *text = mpi_get_text(&reader);
    if (reader.is_bad) return false;
    fprintf(stderr, "srun: error: slipway: %s\n", text);
    kill(getppid(), SIGTERM);
    return true;
}

static bool take_ready(struct node *node) {
    if (node->is_ready) return false;
    node->is_ready = true;
    if (!failure) send_tables();
    return true;
}

static bool take_failed(struct mpi_reader reader) {
    const char *text = mpi_get_text(&reader);
    if (!reader.is_bad) fail("%s", text);
    return !reader.is_bad;
}

static bool take(struct node *node, enum mpi_kind kind, const char *content, size_t size) {
    struct mpi_reader reader = mpi_read(content, size);
    if (!node->is_known) return kind == MPI_HELLO && take_hello(node, reader);
    if (kind == MPI_FENCE) return take_fence(node->number, reader);
    if (kind == MPI_ASK || kind == MPI_ANSWER) return pass_on(node->number, kind, reader);
    if (kind == MPI_READY) return take_ready(node);
    if (kind == MPI_FAILED) return take_failed(reader);
    return kind == MPI_ABORT && take_abort(reader);
}

static void leave(struct node *node) {
    close(node->socket);
    node->socket = -1;
    if (!node->is_known) return;
    members[node->number] = NULL;
    has_left[node->number] = true;
    fail("the PMIx server of %s ended", about[node->number]);
    for (struct fence **place = &fences; *place;) {
        int at = place_of(*place, node->number);
        if (at >= 0 && !(*place)->has_come[at]) end_fence(place, LOST);
        else place = &(*place)->next;
    }
}

static bool hear(struct node *node) {
    char part[65536];
    ssize_t got = recv(node->socket, part, sizeof part, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    mpi_put(&node->in, part, (size_t)got);
    for (;;) {
        enum mpi_kind kind;
        const char *content;
        size_t size;
        int found = mpi_next(&node->in, node->is_known ? MPI_FRAME_MAX : MPI_HELLO_MAX, &kind, &content, &size);
        if (found <= 0) return found == 0;
        if (!take(node, kind, content, size)) return false;
        mpi_drop(&node->in, size);
    }
}

static bool tell(struct node *node) {
    ssize_t sent = send(node->socket, node->out.data, node->out.size, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    memmove(node->out.data, node->out.data + sent, node->out.size - (size_t)sent);
    node->out.size -= (size_t)sent;
    return true;
}

static void forget_gone(void) {
    size_t kept = 0;
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i]->socket >= 0) nodes[kept++] = nodes[i];
        else {
            mpi_free(&nodes[i]->in);
            mpi_free(&nodes[i]->out);
            free(nodes[i]);
        }
    }
    node_count = kept;
}

/* Those that have not shown the key; the oldest is among the first, as nodes are in the order that they came. */
static size_t count_strangers(struct node **oldest) {
    size_t count = 0;
    *oldest = NULL;
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i]->is_known || nodes[i]->socket < 0) continue;
        if (count++ == 0) *oldest = nodes[i];
    }
    return count;
}

static void drop_late(void) {
    struct node *oldest;
    while (count_strangers(&oldest) && now_ms() - oldest->came_ms >= STRANGER_MS) leave(oldest);
}

/* How long a connection that comes now has to wait for its place. */
static long long wait_ms(void) {
    struct node *oldest;
    if (count_strangers(&oldest) < STRANGERS_MAX) return 0;
    long long left = oldest->came_ms + STRANGER_LEAST_MS - now_ms();
    return left > 0 ? left : 0;
}

/* Makes a place for one more connection; false where it has to wait. */
static bool has_place(void) {
    struct node *oldest;
    if (wait_ms() > 0) return false;
    if (count_strangers(&oldest) >= STRANGERS_MAX) {
        leave(oldest);
        forget_gone();
    }
    return node_count < sizeof nodes / sizeof *nodes;
}

/* All that wait: a node must not stand behind strangers for long. What it says is there by now, as a rule. */
static void welcome(void) {
    while (has_place()) {
        int found = accept4(LISTENER, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (found < 0) return;
        struct node *node = nodes[node_count++] = grab(1, sizeof *node);
        node->socket = found;
        node->came_ms = now_ms();
        if (!hear(node)) leave(node);
    }
}

/* How long nothing has to be done without news: for strangers, and for nodes that do not come. -1: for ever. */
static int idle_ms(bool is_waiting) {
    struct node *oldest;
    if (count_strangers(&oldest) == 0) return is_waiting ? 1000 : -1;
    long long until_late = oldest->came_ms + STRANGER_MS - now_ms(), until_place = wait_ms();
    if (until_place > 0 && until_place < until_late) return (int)until_place;
    return until_late > 0 ? (int)until_late : 0;
}

int main(void) {
    static struct pollfd watched[2 + MPI_NODES_MAX + STRANGERS_MAX];
    for (size_t got = 0; got < MPI_KEY;) {
        ssize_t more = read(STDIN_FILENO, key + got, MPI_KEY - got);
        if (more <= 0) return 2;
        got += (size_t)more;
    }
    signal(SIGINT, SIG_IGN); /* of the terminal; srun ends the step, and this ends with srun */
    signal(SIGPIPE, SIG_IGN);
    fcntl(LISTENER, F_SETFL, O_NONBLOCK);
    for (;;) {
        watched[0] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
        watched[1] = (struct pollfd){wait_ms() > 0 ? -1 : LISTENER, POLLIN, 0};
        size_t old = node_count;
        for (size_t i = 0; i < old; i++)
            watched[2 + i] = (struct pollfd){nodes[i]->socket, (short)(POLLIN | (nodes[i]->out.size ? POLLOUT : 0)), 0};
        bool is_waiting = wanted && !has_table && !failure;
        if (poll(watched, 2 + old, idle_ms(is_waiting)) < 0 && errno != EINTR) return 1;
        if (watched[0].revents) return 0;
        for (size_t i = 0; i < old; i++) {
            short events = watched[2 + i].revents;
            bool is_well = true;
            if (events & (POLLIN | POLLHUP | POLLERR)) is_well = hear(nodes[i]);
            if (is_well && events & POLLOUT) is_well = tell(nodes[i]);
            if (!is_well) leave(nodes[i]);
        }
        drop_late();
        forget_gone();
        if (watched[1].revents & POLLIN) welcome();
        if (is_waiting) fail_late();
        forget_gone();
    }
}
