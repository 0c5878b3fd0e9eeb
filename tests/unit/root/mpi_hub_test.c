/* When the hub beside srun sends the table of nodes, and what it tells them where there will be none. */
#define main hub_main
#include "mpi_hub.c"
#undef main
#include "mpi_frame.c"

#include "harness.h"

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

void check(void) {
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
