/* What the helpers of MPI hear from each other, and the command of a step. */
#include "mpi_frame.c"

#include "harness.h"

static void run_command(char *text, size_t length) {
    bool is_daemon = mpi_is_daemon(text);
    CHECK(!is_daemon || (strlen(text) >= 5 && strchr("po", text[strlen(text) - 5])));
    (void)length;
}

/* A stream of frames, read to its end as the hub and the server read it. */
static void run_frames(char *text, size_t length) {
    struct mpi_bytes in = {0};
    enum mpi_kind kind;
    const char *content;
    size_t size;
    mpi_put(&in, text, length);
    for (int found; (found = mpi_next(&in, 1000, &kind, &content, &size)) > 0; mpi_drop(&in, size)) {
        struct mpi_reader reader = mpi_read(content, size);
        CHECK(size <= 1000 && content + size <= in.data + in.size);
        mpi_get_number(&reader);
        CHECK(strlen(mpi_get_text(&reader)) <= size);
        mpi_get(&reader, mpi_get_number(&reader));
        CHECK(reader.is_bad || (reader.at >= content && reader.at <= content + size));
    }
    mpi_free(&in);
}

static void run_ranks(char *text, size_t length) {
    uint32_t ranks[16];
    int count = mpi_read_ranks(text, ranks, 16);
    (void)length;
    CHECK(count <= 16);
    for (int i = 0; i < count; i++) CHECK(ranks[i] < 16 && (i == 0 || ranks[i] > ranks[i - 1]));
}

static const char *const commands[] = {"prted", "/usr/bin/orted", "./prted", NULL};
static const char *const frames[] = {"\0\0\0\1", "\0\0\0\10", "\0", "host", NULL};
static const char *const lists[] = {"0,1,2", "15", "3,4,", "007", NULL};
const struct fuzz fuzzes[] = {{"command", run_command, commands}, {"mpi-frames", run_frames, frames}, {"mpi-ranks", run_ranks, lists}, {0}};

static void check_frames(void) {
    struct mpi_bytes bytes = {0};
    enum mpi_kind kind;
    const char *content;
    size_t size, begin = mpi_begin(&bytes, MPI_FENCE);
    mpi_put_number(&bytes, 7);
    mpi_put_text(&bytes, "gpu-0");
    mpi_put(&bytes, "abc", 3);
    mpi_end(&bytes, begin);
    CHECK(mpi_next(&bytes, MPI_FRAME_MAX, &kind, &content, &size) == 1 && kind == MPI_FENCE && size == 13);
    struct mpi_reader reader = mpi_read(content, size);
    CHECK(mpi_get_number(&reader) == 7 && strcmp(mpi_get_text(&reader), "gpu-0") == 0 && !reader.is_bad && reader.end - reader.at == 3);
    mpi_get_number(&reader);
    CHECK(reader.is_bad && *mpi_get_text(&reader) == 0);
    CHECK(mpi_next(&bytes, 12, &kind, &content, &size) == -1);
    bytes.size--;
    CHECK(mpi_next(&bytes, MPI_FRAME_MAX, &kind, &content, &size) == 0);
    mpi_free(&bytes);
}

void check(void) {
    uint32_t ranks[8];
    CHECK(mpi_is_daemon("prted") && mpi_is_daemon("/opt/x/orted") && !mpi_is_daemon("prted2") && !mpi_is_daemon("") && !mpi_is_daemon("/"));
    CHECK(mpi_read_ranks("0,3,7", ranks, 8) == 3 && ranks[1] == 3);
    CHECK(mpi_read_ranks("8", ranks, 8) < 0 && mpi_read_ranks("1,1", ranks, 8) < 0 && mpi_read_ranks("2,1", ranks, 8) < 0);
    CHECK(mpi_read_ranks("1,", ranks, 8) < 0 && mpi_read_ranks("-1", ranks, 8) < 0 && mpi_read_ranks("x", ranks, 8) < 0);
    CHECK(mpi_read_ranks("", ranks, 8) == 0);
    check_frames();
}
