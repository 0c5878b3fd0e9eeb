/* SPANK plugin: at the end of a batch script, lines in the job's output file about what the job used on that node. The figures are of the job's own
   control groups, as accounting has the last ones only after the end. It is a plugin of its own, optional in plugstack.conf, and no job waits for it or
   fails by it: an output that is no regular file gets nothing, and a file system that does not answer is given up after two seconds. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "efficiency.h"
#include "group.h"
#include "owned.h"
#include "reason.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(slipway_efficiency, 1)
spank_f slurm_spank_init_post_opt, slurm_spank_task_init, slurm_spank_task_post_fork, slurm_spank_task_exit;
#pragma GCC visibility pop

enum { WRITE_MS = 2000 };

static int ends[2] = {-1, -1}; /* the task hands its output over to slurmstepd, which has none of it */
static char cpu_group[ROOT_GROUPS_MAX], memory_group[ROOT_GROUPS_MAX];
static struct timespec began;

static bool is_batch(spank_t spank) {
    uint32_t step;
    return spank_context() == S_CTX_REMOTE && spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == SLURM_BATCH_SCRIPT;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    if (is_batch(spank) && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) ends[0] = ends[1] = -1;
    return ESPANK_SUCCESS;
}

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
};

/* The task, its user by now. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments) {
    (void)spank;
    (void)count;
    (void)arguments;
    if (ends[1] < 0) return ESPANK_SUCCESS;
    char byte = 0;
    int output = STDOUT_FILENO;
    union control control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof output);
    memcpy(CMSG_DATA(header), &output, sizeof output);
    sendmsg(ends[1], &message, MSG_NOSIGNAL);
    return ESPANK_SUCCESS;
}

/* slurmstepd, when the task is in the job's groups. */
int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    pid_t task;
    if (ends[0] < 0 || spank_get_item(spank, S_TASK_PID, &task) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
    clock_gettime(CLOCK_MONOTONIC, &began);
    root_group_of_job(task, "cpuacct", cpu_group);
    root_group_of_job(task, "memory", memory_group);
    root_reason_clear();
    return ESPANK_SUCCESS;
}

/* The file at the task's output, opened; -1 where it is no file. */
static int take_output(void) {
    char byte;
    int output = -1;
    union control control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (recvmsg(ends[0], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof output)) memcpy(&output, CMSG_DATA(header), sizeof output);
    return output;
}

/* The content of the first of two files that is there: v2's, or v1's. */
static bool read_figure(const char *folder, const char *second, const char *first, char text[4096]) {
    char path[ROOT_GROUPS_MAX + 64];
    for (int tries = 0; tries < 2; tries++) {
        snprintf(path, sizeof path, "%s/%s", folder, tries ? second : first);
        owned_fd file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = file < 0 ? -1 : read(file, text, 4095);
        if (length < 0) continue;
        text[length] = 0;
        return true;
    }
    return false;
}

static bool measure(spank_t spank, struct efficiency *figures) {
    static char node[256];
    char text[4096];
    struct timespec now;
    uint64_t mib;
    uint16_t cpus;
    if (spank_get_item(spank, S_JOB_ID, &figures->job) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_NNODES, &figures->nodes) != ESPANK_SUCCESS) return false;
    if (spank_get_item(spank, S_JOB_NCPUS, &cpus) != ESPANK_SUCCESS || cpus == 0 || gethostname(node, sizeof node - 1) < 0) return false;
    figures->cpus = cpus;
    if (spank_get_item(spank, S_JOB_ALLOC_MEM, &mib) == ESPANK_SUCCESS) figures->granted = mib << 20;
    figures->node = node;
    clock_gettime(CLOCK_MONOTONIC, &now);
    figures->wall_us = (uint64_t)(now.tv_sec - began.tv_sec) * 1000000 + (uint64_t)(now.tv_nsec / 1000) - (uint64_t)(began.tv_nsec / 1000);
    figures->has_cpu = read_figure(cpu_group, "cpuacct.usage", "cpu.stat", text);
    if (figures->has_cpu) figures->cpu_us = efficiency_cpu_us(text);
    if (!read_figure(memory_group, "memory.max_usage_in_bytes", "memory.peak", text)) return false;
    figures->used = strtoull(text, NULL, 10);
    return true;
}

/* By a child with the user's rights: whatever holds it up does not hold the job up. slurmstepd has threads: nothing but calls to the kernel. */
static void write_as(uid_t user, gid_t group, int output, const char *text, size_t length) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) < 0) return;
    owned_fd ended = pipe_ends[0], lives = pipe_ends[1];
    pid_t child = fork();
    if (child == 0) {
        if (syscall(SYS_setresgid, group, group, group) == 0 && syscall(SYS_setresuid, user, user, user) == 0 && write(output, text, length) < 0) _exit(1);
        _exit(0);
    }
    root_close_now(&lives);
    if (child < 0) return;
    struct pollfd watched = {ended, POLLIN, 0};
    if (poll(&watched, 1, WRITE_MS) <= 0) kill(child, SIGKILL);
    while (waitpid(child, NULL, watched.revents ? 0 : WNOHANG) < 0 && errno == EINTR) continue;
}

int slurm_spank_task_exit(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    struct efficiency figures = {0};
    char text[EFFICIENCY_MAX];
    struct stat found;
    uid_t user;
    gid_t group;
    owned_fd output = ends[0] < 0 ? -1 : take_output();
    if (output < 0 || fstat(output, &found) < 0 || !S_ISREG(found.st_mode) || !measure(spank, &figures)) return ESPANK_SUCCESS;
    if (spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_GID, &group) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
    write_as(user, group, output, text, efficiency_write(&figures, text));
    return ESPANK_SUCCESS;
}
