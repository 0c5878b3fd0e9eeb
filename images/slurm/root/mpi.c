#include "mpi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mpi_frame.h"
#include "owned.h"

#define HUB "/usr/lib/slipway/mpi-hub"
#define SERVER "/usr/lib/slipway/mpi-server"
#define ADDRESSES_MAX 4
#define WAIT_S 60
#define END_MS 500
#define ANSWER_MAX (1u << 20)

static bool is_for_others(const struct ifaddrs *each) {
    if (each->ifa_addr == NULL || !(each->ifa_flags & IFF_UP) || each->ifa_flags & IFF_LOOPBACK) return false;
    if (each->ifa_addr->sa_family == AF_INET) return true;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)each->ifa_addr;
    return each->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

/* Appends the machine's addresses, each after a blank; false where it has none. */
static bool add_addresses(char *text, size_t room) {
    struct ifaddrs *all;
    int count = 0;
    if (getifaddrs(&all) < 0) return false;
    for (const struct ifaddrs *each = all; each && count < ADDRESSES_MAX; each = each->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        if (!is_for_others(each)) continue;
        const void *bytes = each->ifa_addr->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr
                                                                 : (const void *)&((const struct sockaddr_in6 *)(const void *)each->ifa_addr)->sin6_addr;
        size_t used = strlen(text);
        if (inet_ntop(each->ifa_addr->sa_family, bytes, address, sizeof address) && used + strlen(address) + 2 < room) {
            snprintf(text + used, room - used, " %s", address);
            count++;
        }
    }
    freeifaddrs(all);
    return count > 0;
}

static int listen_anywhere(uint16_t *port) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t size = sizeof six;
    int off = 0;
    owned_fd made = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (made < 0 || bind(made, (struct sockaddr *)&six, sizeof six) < 0) {
        root_close_now(&made);
        made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (made < 0 || bind(made, (struct sockaddr *)&four, sizeof four) < 0) return -1;
    }
    if (listen(made, SOMAXCONN) < 0 || getsockname(made, (struct sockaddr *)&six, &size) < 0) return -1;
    *port = ntohs(six.sin6_port); /* both kinds have it in the same place */
    return root_hand_over(&made);
}

void root_mpi_open(void) {
    unsigned char random[MPI_KEY / 2];
    char said[MPI_KEY + 16 + ADDRESSES_MAX * (INET6_ADDRSTRLEN + 1)];
    uint16_t port;
    int ends[2];
    unsetenv(ROOT_MPI_HUB); /* of a step around this one */
    if (access(HUB, X_OK) < 0 || getrandom(random, sizeof random, 0) != sizeof random) return;
    owned_fd listener = listen_anywhere(&port);
    if (listener < 0 || pipe2(ends, O_CLOEXEC) < 0) return;
    owned_fd from = ends[0];
    for (size_t i = 0; i < sizeof random; i++) snprintf(said + 2 * i, 3, "%02x", random[i]);
    snprintf(said + MPI_KEY, sizeof said - MPI_KEY, " %u", port);
    if (!add_addresses(said, sizeof said) || write(ends[1], said, MPI_KEY) != MPI_KEY) {
        close(ends[1]);
        return;
    }
    pid_t child = fork(); /* srun has threads: nothing but calls to the kernel until exec */
    if (child == 0) {
        signal(SIGPIPE, SIG_IGN);
        int kept = fcntl(listener, F_DUPFD, 10), input = fcntl(from, F_DUPFD, 10), nothing = open("/dev/null", O_WRONLY);
        if (kept < 0 || input < 0 || nothing < 0) _exit(127);
        dup2(input, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        dup2(kept, 3);
        close_range(4, ~0U, 0);
        execl(HUB, HUB, (char *)NULL);
        _exit(127);
    }
    if (child < 0) close(ends[1]); /* else it stays open as long as srun lives */
    else setenv(ROOT_MPI_HUB, said, 1);
}

static int stop[2] = {-1, -1}; /* slurmstepd writes nothing: the server ends when it closes its end */
static int gone[2] = {-1, -1}; /* and here it hears that the server has ended */

void root_mpi_prepare(void) {
    if (pipe2(stop, O_CLOEXEC) < 0 || pipe2(gone, O_CLOEXEC) < 0) stop[1] = gone[0] = -1;
}

void root_mpi_task_ended(spank_t spank) {
    static uint32_t ended;
    uint32_t tasks;
    if (stop[1] < 0 || spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || ++ended != tasks) return;
    struct pollfd watched = {gone[0], POLLIN, 0};
    root_close_now(&stop[1]);
    root_close_now(&gone[1]);
    poll(&watched, 1, END_MS);
}

/* What the server has to know of the step, in the words of Slurm's variables. */
static const char *const told[] = {ROOT_MPI_HUB, "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_TASKS", "SLURM_NODEID", "SLURM_GTIDS", "SLURMD_NODENAME"};

/* The server is no child of the task, which may wait for its own. */
static void start_server(spank_t spank, const char *folder) {
    char *variables[sizeof told / sizeof *told + 2] = {0};
    size_t count = 0;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        static char value[65536]; /* a task's process calls it once */
        if (spank_getenv(spank, told[i], value, sizeof value) != ESPANK_SUCCESS || asprintf(&variables[count], "%s=%s", told[i], value) < 0) return;
        count++;
    }
    if (asprintf(&variables[count], "TMPDIR=%s", folder) < 0) return;
    pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
        if (fork() != 0) _exit(0);
        int nothing = open("/dev/null", O_RDWR), ending = fcntl(stop[0], F_DUPFD, 10), living = fcntl(gone[1], F_DUPFD, 10);
        for (int fd = 0; fd < 3; fd++) dup2(nothing, fd);
        dup2(ending < 0 ? nothing : ending, 3);
        dup2(living < 0 ? nothing : living, 4);
        close_range(5, ~0U, 0);
        setsid();
        if (chdir("/") == 0) execle(SERVER, SERVER, folder, (char *)NULL, variables);
        _exit(127);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
}

/* The server of the node's first task; -1 where it says that it has failed. */
static int connect_server(const char *path, const char *failed) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timespec pause = {0, 1000000}, now;
    if (strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec + WAIT_S; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now)) {
        owned_fd made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (made < 0) return -1;
        if (connect(made, (struct sockaddr *)&address, sizeof address) == 0) return root_hand_over(&made);
        if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN) return -1;
        if (access(failed, F_OK) == 0) return -1;
        nanosleep(&pause, NULL);
    }
    return -1;
}

static bool take_variables(spank_t spank, int server, uint32_t rank) {
    uint32_t asked = htonl(rank), size;
    char ignored[8];
    struct timeval limit = {WAIT_S, 0};
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (mpi_send(server, &asked, sizeof asked) < 0 || mpi_receive(server, &size, sizeof size) < 0) return false;
    size = ntohl(size);
    if (size == 0 || size > ANSWER_MAX) return false;
    owned_text answer = malloc(size + 1);
    if (answer == NULL || mpi_receive(server, answer, size) < 0) return false;
    answer[size] = 0;
    /* MPICH finds Slurm's own PMI beside PMIx, and takes neither unless it is told which. */
    if (spank_getenv(spank, "PMI_SIZE", ignored, sizeof ignored) != ESPANK_ENV_NOEXIST) spank_setenv(spank, "MPIR_CVAR_PMI_VERSION", "1", 0);
    for (char *at = answer; at < answer + size; at += strlen(at) + 1) {
        char *value = strchr(at, '=');
        if (value == NULL) return false;
        *value++ = 0;
        if (spank_setenv(spank, at, value, 1) != ESPANK_SUCCESS) return false;
        at = value;
    }
    return true;
}

bool root_mpi_join(spank_t spank) {
    uint32_t job, step, rank, local, tasks;
    char hub[512], folder[96], path[112], failed[112];
    if (spank_getenv(spank, ROOT_MPI_HUB, hub, sizeof hub) != ESPANK_SUCCESS) return false;
    bool is_known = spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS && spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
                    spank_get_item(spank, S_TASK_GLOBAL_ID, &rank) == ESPANK_SUCCESS && spank_get_item(spank, S_TASK_ID, &local) == ESPANK_SUCCESS &&
                    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS;
    if (!is_known || tasks < 2 || step >= SLURM_MAX_NORMAL_STEP_ID || access(SERVER, X_OK) < 0) return false;
    snprintf(folder, sizeof folder, "/tmp/.slipway-mpi-%u.%u", job, step);
    snprintf(path, sizeof path, "%s/control", folder);
    snprintf(failed, sizeof failed, "%s/failed", folder);
    if (local == 0) {
        if (mkdir(folder, 0700) < 0 && errno != EEXIST) return false;
        start_server(spank, folder);
    }
    owned_fd server = connect_server(path, failed);
    return server >= 0 && take_variables(spank, server, rank);
}
