/* SPANK plugin for containers, behind slipway_root.so in plugstack.conf: a task is in its job's root, and its user, when it enters its container here.
   It is a plugin of its own so that nodes with an older image go on as they are: plugstack.conf calls it optional. */
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "container.h"
#include "container_flags.h"
#include "container_hold.h"
#include "container_pod.h"
#include "reason.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(slipway_container, 1)
spank_f slurm_spank_init, slurm_spank_init_post_opt, slurm_spank_job_prolog, slurm_spank_job_epilog, slurm_spank_task_init, slurm_spank_task_exit;
#pragma GCC visibility pop

static char refusal[512];

/* A fault here costs no job without a container: it goes to the log, and a default stands in. */
static void complain(void) {
    if (*root_reason()) slurm_error("slipway: %s", root_reason());
    root_reason_clear();
}

static void read_arguments(int count, char **arguments) {
    for (int i = 0; i < count; i++)
        if (root_container_setting(arguments[i]) <= 0)
            slurm_error("slipway: plugstack.conf gives slipway_container.so an argument other than cache=MiB and registry=HOST: %s", arguments[i]);
}

int slurm_spank_init(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return ESPANK_SUCCESS;
    return root_container_register(spank);
}

/* Where nobody makes room, images are pulled all the same, as long as the disk has it. A refusal is kept for the tasks: one here would drain the node. */
static int serve(spank_t spank) {
    uid_t user;
    root_reason_clear();
    if (!root_container_wanted() || spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || user == 0) return ESPANK_SUCCESS;
    if (root_container_await(user) < 0) snprintf(refusal, sizeof refusal, "%s", root_reason());
    root_reason_clear();
    if (root_container_hold() < 0 || root_container_serve(user) < 0) complain();
    return ESPANK_SUCCESS;
}

/* Of srun, sbatch and salloc; and of a step's slurmstepd. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    if (spank_context() == S_CTX_REMOTE) return serve(spank);
    if (root_container_check() == 0) return ESPANK_SUCCESS;
    complain();
    exit(1); /* Slurm goes on after the error of a plugin that is optional */
}

int slurm_spank_job_prolog(spank_t spank, int count, char **arguments) {
    uid_t user;
    gid_t group;
    uint32_t job;
    read_arguments(count, arguments);
    root_reason_clear();
    if (spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
    if (root_container_close(user, job) < 0) complain(); /* what a requeued job left, or one that had the number before */
    if (root_container_open(user, spank_get_item(spank, S_JOB_GID, &group) == ESPANK_SUCCESS ? group : (gid_t)-1) < 0) complain();
    return ESPANK_SUCCESS;
}

int slurm_spank_job_epilog(spank_t spank, int count, char **arguments) {
    uid_t user;
    uint32_t job;
    read_arguments(count, arguments);
    root_reason_clear();
    if (spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
    if (root_container_close(user, job) < 0) complain();
    return ESPANK_SUCCESS;
}

/* One of a node's tasks speaks for all. */
static void __attribute__((noreturn)) refuse(spank_t spank) {
    char host[256] = "";
    int task;
    gethostname(host, sizeof host - 1);
    if (spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task == 0) dprintf(2, "slipway: %s: %s\n", host, refusal);
    _exit(1);
}

int slurm_spank_task_init(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    if (!root_container_wanted()) return ESPANK_SUCCESS;
    if (*refusal) refuse(spank);
    root_container_enter(spank);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_exit(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    if (root_container_wanted()) root_container_task_ended(spank);
    return ESPANK_SUCCESS;
}
