#include "mpi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
#include "mpi_net.h"
#include "mpi_why.h"
#include "owned.h"

#define HUB "/usr/lib/slipway/mpi-hub"
#define SERVER "/usr/lib/slipway/mpi-server"
#define SAID "said" /* what the server writes to standard error, in its folder */
#define REACH_MS 5000
#define WAIT_S 30 /* for the server: longer than it may take to reach srun, and then to hear from the other nodes (mpi_hub.c) */
#define END_MS 500
#define ANSWER_MAX (1u << 20)

/* Slurm's own settings, in every process that loads this plugin; slurm.h has the type alone. */
extern slurm_conf_t slurm_conf __attribute__((weak, visibility("default")));

/* The ports that firewalls before srun let pass, where slurm.conf names some. */
static const uint16_t *port_range(void) {
    const uint16_t *range = &slurm_conf ? slurm_conf.srun_port_range : NULL;
    return range && range[0] ? range : NULL;
}

static int listener = -1; /* until the hub has it */
static char announced[MPI_PLACE_MAX]; /* what the nodes are told of it */

/* srun forks before it launches. With the child's copy, connections would come in after the hub has ended, and nobody would answer. */
static void drop_listener(void) { root_close_now(&listener); }

void root_mpi_open(void) {
    unsigned char random[MPI_KEY / 2];
    uint16_t port;
    if (*announced) return;
    unsetenv(ROOT_MPI_HUB); /* of a step around this one */
    if (access(HUB, X_OK) < 0 || getrandom(random, sizeof random, 0) != sizeof random) return;
    owned_fd made = mpi_listen(port_range(), &port);
    if (made < 0) return;
    for (size_t i = 0; i < sizeof random; i++) snprintf(announced + 2 * i, 3, "%02x", random[i]);
    snprintf(announced + MPI_KEY, sizeof announced - MPI_KEY, " %u", port);
    if (!mpi_add_addresses(announced, sizeof announced) || pthread_atfork(NULL, NULL, drop_listener) != 0) return;
    listener = root_hand_over(&made);
    setenv(ROOT_MPI_HUB, announced, 1);
}

static void start_hub(void) {
    int ends[2];
    owned_fd held = root_hand_over(&listener);
    if (held < 0 || pipe2(ends, O_CLOEXEC) < 0) return;
    owned_fd from = ends[0];
    if (write(ends[1], announced, MPI_KEY) != MPI_KEY) {
        close(ends[1]);
        return;
    }
    pid_t child = fork(); /* srun has threads: nothing but calls to the kernel until exec */
    if (child == 0) {
        signal(SIGPIPE, SIG_IGN);
        int kept = fcntl(held, F_DUPFD, 10), input = fcntl(from, F_DUPFD, 10), nothing = open("/dev/null", O_WRONLY);
        if (kept < 0 || input < 0 || nothing < 0) _exit(127);
        dup2(input, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        dup2(kept, 3);
        close_range(4, ~0U, 0);
        execl(HUB, HUB, (char *)NULL);
        _exit(127);
    }
    if (child < 0) close(ends[1]); /* else it stays open as long as srun lives */
}

void root_mpi_launch(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_hub);
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

/* What the server has to know of the step, in the words of Slurm's variables: in a heterogeneous step they are of all its parts, while what SPANK
   says is of one. */
enum { JOB, STEP, NODES, TASKS, NODE, RANKS, NAME, TOLD };
static const char *const told[TOLD] = {
    [JOB] = "SLURM_JOB_ID", [STEP] = "SLURM_STEP_ID", [NODES] = "SLURM_STEP_NUM_NODES", [TASKS] = "SLURM_STEP_NUM_TASKS",
    [NODE] = "SLURM_NODEID", [RANKS] = "SLURM_GTIDS", [NAME] = "SLURMD_NODENAME",
};

static uint32_t number_in(const char *variable) { return (uint32_t)strtoul(strchr(variable, '=') + 1, NULL, 10); }

/* To the hub, before libpmix is loaded: the others wait for it, and where that fails the hub hears the connection end. */
static int say_hello(int hub, const char *key, char *const *variables) {
    struct mpi_bytes frame = {0};
    size_t begin = mpi_begin(&frame, MPI_HELLO);
    mpi_put(&frame, key, MPI_KEY);
    mpi_put_number(&frame, number_in(variables[NODES]));
    mpi_put_number(&frame, number_in(variables[NODE]));
    mpi_put_text(&frame, strchr(variables[NAME], '=') + 1);
    mpi_put_text(&frame, strchr(variables[RANKS], '=') + 1);
    mpi_end(&frame, begin);
    int result = mpi_send(hub, frame.data, frame.size);
    mpi_free(&frame);
    return result;
}

/* A connection that the hub knows this node by, or none, and then a reason is written. */
static int join_hub(const char *text, const char *folder, char *const *variables) {
    struct mpi_place place;
    char why[MPI_WHY_MAX];
    const char *node = strchr(variables[NAME], '=') + 1;
    bool is_place = mpi_read_place(text, &place);
    owned_fd hub = is_place ? mpi_reach(&place, REACH_MS) : -1;
    if (hub >= 0 && say_hello(hub, place.key, variables) == 0) return root_hand_over(&hub);
    if (is_place) {
        const char *port = strchr(text, ' ') + 1;
        int digits = (int)strcspn(port, " ");
        snprintf(why, sizeof why, "%s cannot connect to srun at port %.*s of%s: %s", node, digits, port, port + digits, strerror(errno));
    } else {
        snprintf(why, sizeof why, "%s says where srun is in other words than %s can read", ROOT_MPI_HUB, node);
    }
    mpi_why_write(folder, why);
    return -1;
}

/* The server's process. What it says before it can give a reason, the loader's words for instance, is in a file. */
static _Noreturn void become_server(const char *place, const char *folder, int living, char *const *variables) {
    int hub = chdir(folder) < 0 ? -1 : join_hub(place, folder, variables);
    if (hub < 0) _exit(1);
    int said = open(SAID, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600), nothing = open("/dev/null", O_RDWR);
    int from[] = {nothing, nothing, said < 0 ? nothing : said, stop[0] < 0 ? nothing : stop[0], gone[1] < 0 ? nothing : gone[1], hub, living};
    int count = sizeof from / sizeof *from;
    for (int fd = 0; fd < count; fd++) from[fd] = fcntl(from[fd], F_DUPFD, count);
    for (int fd = 0; fd < count; fd++) dup2(from[fd], fd);
    close_range((unsigned)count, ~0U, 0);
    setsid();
    execle(SERVER, SERVER, folder, (char *)NULL, variables);
    dprintf(STDERR_FILENO, "cannot start %s: %s", SERVER, strerror(errno));
    _exit(127);
}

/* The server is no child of the task, which may wait for its own. Gives a file whose end says that it has ended; -1. */
static int start_server(spank_t spank, const char *place, const char *folder) {
    static char *variables[TOLD + 2], value[65536]; /* a task's process calls it once */
    int ends[2];
    for (int i = 0; i < TOLD; i++)
        if (spank_getenv(spank, told[i], value, sizeof value) != ESPANK_SUCCESS || asprintf(&variables[i], "%s=%s", told[i], value) < 0) return -1;
    if (asprintf(&variables[TOLD], "TMPDIR=%s", folder) < 0 || pipe2(ends, O_CLOEXEC) < 0) return -1;
    owned_fd living = ends[1], ended = ends[0];
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        if (fork() != 0) _exit(0);
        become_server(place, folder, living, variables);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
    return root_hand_over(&ended);
}

/* For the tasks that wait as well: the server has ended, and if it gave no reason, what it said last is one. */
static void note_end(spank_t spank, const char *folder) {
    char path[128], node[128], text[MPI_WHY_MAX - 160] = {0}, why[MPI_WHY_MAX];
    snprintf(path, sizeof path, "%s/" SAID, folder);
    owned_fd file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0) strcpy(text, "its PMIx server ended");
    text[strcspn(text, "\n")] = 0;
    if (spank_getenv(spank, told[NAME], node, sizeof node) != ESPANK_SUCCESS) strcpy(node, "this node");
    snprintf(why, sizeof why, "%s: %s", node, text);
    mpi_why_write(folder, why);
}

/* To the server of the node's first task, which alone has `living`; -1 where there is a reason for none. */
static int connect_server(spank_t spank, const char *folder, int living) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timespec now;
    char ignored[MPI_WHY_MAX];
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s/control", folder) >= sizeof address.sun_path) return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec + WAIT_S; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now)) {
        struct pollfd watched = {living, POLLIN, 0};
        owned_fd made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (made < 0) return -1;
        if (connect(made, (struct sockaddr *)&address, sizeof address) == 0) return root_hand_over(&made);
        if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN) return -1;
        if (mpi_why_read(folder, ignored, sizeof ignored)) return -1;
        if (poll(&watched, 1, 1) > 0) {
            note_end(spank, folder);
            return -1;
        }
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

bool root_mpi_is_for(spank_t spank) {
    char tasks[16];
    uint32_t part = 1;
    if (spank_getenv(spank, told[TASKS], tasks, sizeof tasks) == ESPANK_SUCCESS) return strtoul(tasks, NULL, 10) > 1;
    return spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &part) == ESPANK_SUCCESS && part > 1;
}

bool root_mpi_join(spank_t spank, char *why, size_t room) {
    uint32_t job, step, local;
    char place[MPI_PLACE_MAX], rank[16], folder[80];
    *why = 0;
    if (!root_mpi_is_for(spank) || spank_getenv(spank, ROOT_MPI_HUB, place, sizeof place) != ESPANK_SUCCESS) return false;
    bool is_known = spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS && spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
                    spank_get_item(spank, S_TASK_ID, &local) == ESPANK_SUCCESS && spank_getenv(spank, "SLURM_PROCID", rank, sizeof rank) == ESPANK_SUCCESS;
    if (!is_known || step >= SLURM_MAX_NORMAL_STEP_ID) return false;
    snprintf(folder, sizeof folder, "/tmp/.slipway-mpi-%u.%u", job, step);
    owned_fd living = -1;
    if (local == 0) {
        if (mkdir(folder, 0700) < 0 && errno != EEXIST) return false;
        if ((living = start_server(spank, place, folder)) < 0) mpi_why_write(folder, "the PMIx server cannot be started");
    }
    owned_fd server = connect_server(spank, folder, living);
    if (server >= 0 && take_variables(spank, server, (uint32_t)strtoul(rank, NULL, 10))) return true;
    if (living >= 0) note_end(spank, folder);
    mpi_why_read(folder, why, room);
    return false;
}
