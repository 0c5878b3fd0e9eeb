/* How the nodes of a step reach the hub beside srun, and how a node's tasks learn why there is no PMIx server. */
#include "mpi_net.c"
#include "mpi_why.c"

#include "harness.h"

#define KEY "0123456789abcdef0123456789abcdef"

static void run_place(char *text, size_t length) {
    (void)length;
    struct mpi_place place;
    if (mpi_read_place(text, &place)) CHECK(place.count > 0 && place.count <= MPI_ADDRESSES_MAX && strlen(place.key) == MPI_KEY);
}

static const char *const places[] = {KEY " 40123 10.0.0.7", KEY " 1 ::1 fd00::2 127.0.0.1", KEY, " ", "65535", NULL};
const struct fuzz fuzzes[] = {{"mpi-place", run_place, places}, {0}};

static void check_places(void) {
    struct mpi_place place;
    CHECK(mpi_read_place(KEY " 40123 10.0.0.7 fd00::2", &place) && place.count == 2 && strcmp(place.key, KEY) == 0);
    CHECK(place.addresses[0].ss_family == AF_INET && place.addresses[1].ss_family == AF_INET6);
    CHECK(!mpi_read_place("", &place) && !mpi_read_place(KEY, &place) && !mpi_read_place(KEY " 40123", &place) && !mpi_read_place("abc 40123 10.0.0.7", &place));
    CHECK(!mpi_read_place(KEY " 0 10.0.0.7", &place) && !mpi_read_place(KEY " 65536 10.0.0.7", &place) && !mpi_read_place(KEY " 40x 10.0.0.7", &place));
    CHECK(!mpi_read_place(KEY " 40123 localhost", &place) && !mpi_read_place(KEY " 40123 10.0.0.7  10.0.0.8", &place));
    CHECK(!mpi_read_place(KEY " 40123 ::1 ::2 ::3 ::4 ::5", &place));
}

/* Two sockets cannot have the one port of a range; without a range each has its own. */
static void check_ports(uint16_t *port) {
    uint16_t first, second, range[2];
    owned_fd any = mpi_listen(NULL, &first), other = mpi_listen(NULL, &second);
    CHECK(any >= 0 && other >= 0 && first && second && first != second);
    root_close_now(&any);
    range[0] = range[1] = first;
    owned_fd only = mpi_listen(range, port);
    CHECK(only >= 0 && *port == first && mpi_listen(range, &second) < 0);
    range[0] = range[1] = UINT16_MAX;
    owned_fd last = mpi_listen(range, &second);
    CHECK(last < 0 || second == UINT16_MAX);
}

/* The address that answers, whichever it is; a port where nobody listens says so at once, and silence has an end. */
static void check_reach(void) {
    struct mpi_place place;
    char text[MPI_PLACE_MAX];
    uint16_t port, silent;
    check_ports(&port);
    snprintf(text, sizeof text, KEY " %u 127.0.0.1", port);
    int64_t begun = now_ms();
    CHECK(mpi_read_place(text, &place) && mpi_reach(&place, 60000) < 0 && errno == ECONNREFUSED && now_ms() - begun < 30000);
    owned_fd listener = mpi_listen((uint16_t[]){port, port}, &port);
    snprintf(text, sizeof text, KEY " %u 127.255.255.254 127.0.0.1", port);
    owned_fd reached = mpi_read_place(text, &place) ? mpi_reach(&place, 60000) : -1;
    CHECK(listener >= 0 && reached >= 0 && !(fcntl(reached, F_GETFL) & O_NONBLOCK));

    owned_fd full = mpi_listen(NULL, &silent);
    int waiting[4];
    CHECK(full >= 0 && listen(full, 0) == 0);
    snprintf(text, sizeof text, KEY " %u 127.0.0.1", silent);
    CHECK(mpi_read_place(text, &place));
    for (int i = 0; i < 4; i++) waiting[i] = begin(&place.addresses[0]); /* the kernel drops what its queue has no place for */
    begun = now_ms();
    CHECK(mpi_reach(&place, 200) < 0 && errno == ETIMEDOUT && now_ms() - begun >= 200);
    for (int i = 0; i < 4; i++) root_close_fd(&waiting[i]);
}

static void check_reasons(void) {
    char folder[64], why[MPI_WHY_MAX], lengthy[MPI_WHY_MAX * 2];
    int made = scratch();
    snprintf(folder, sizeof folder, "/proc/self/fd/%d", made);
    CHECK(!mpi_why_read(folder, why, sizeof why));
    mpi_why_write(folder, "gpu-0: a, b\n\tc");
    mpi_why_write(folder, "another");
    CHECK(mpi_why_read(folder, why, sizeof why) && strcmp(why, "gpu-0: a; b  c") == 0);
    CHECK(unlinkat(made, "failed", 0) == 0);
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    mpi_why_write(folder, lengthy);
    CHECK(mpi_why_read(folder, why, sizeof why) && strlen(why) == MPI_WHY_MAX - 1);
    CHECK(unlinkat(made, "failed", 0) == 0 && symlinkat("/etc/hostname", made, "failed") == 0 && !mpi_why_read(folder, why, sizeof why));
}

void check(void) {
    check_places();
    check_reach();
    check_reasons();
}
