/* For slurmd and its slurmstepds, by LD_PRELOAD: a file that sbcast or `srun --bcast` sends arrives where the job sees it, in its own /tmp for
   one, and a task's epilog is under the limits of its job.

   slurmd writes such files from a child of its own that becomes the job's user, and calls namespace_g_join of its library in it first. SPANK has no
   hook there. A plugin of Slurm's (NamespaceType) has, but slurm.conf names it for all nodes at once, and a slurmd whose image has no such file
   ends at its next reconfigure (seen on 26.05.5): nodes with running jobs could not be updated one after the other.

   slurmstepd forks the program of --task-epilog from itself, outside of its job's memory group (group.h), and calls the same function in it first,
   as root still.

   The worker's program holds slurmd's port while slurmd is down, as a job could take it otherwise: jobs share the pod's network. slurmd shares the
   port with it (SO_REUSEPORT), which Linux allows to sockets of one user alone. */
#include <dlfcn.h>
#include <netinet/in.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "enter.h"
#include "group.h"
#include "owned.h"
#include "reason.h"

#define EXPORTED __attribute__((visibility("default")))
typedef int join(slurm_step_id_t *step, uid_t user, bool is_new);
EXPORTED join namespace_g_join;

/* Of the step's tasks, once they are there: the SPANK plugin writes it. */
EXPORTED char slipway_step_groups[ROOT_GROUPS_MAX];

/* Set by the plugin in slurmstepd once a step's tasks are forked, so what slurmstepd forks from then on is none of them. */
EXPORTED bool slipway_step_has_tasks;

/* slurmd's port, which programs/worker holds. It looks for this name: an older file would leave slurmd without its port. */
EXPORTED in_port_t slipway_held_port = 6818;

static pid_t loader;

__attribute__((constructor)) static void remember(void) { loader = getpid(); }

/* Other programs that slurmd starts inherit the preload, too, and have no such functions. */
#pragma weak slurm_error
#pragma weak spank_context

static int enter(uint32_t job, uid_t user) {
    owned_conf conf = malloc(sizeof *conf);
    if (conf == NULL) return root_fail("out of memory");
    int found = root_conf_read(ROOT_CONF_PATH, conf);
    bool stays = found == 0 || (found > 0 && root_conf_is_outside(conf, user));
    if (found < 0 || stays) return found < 0 ? -1 : 0;
    root_version version;
    owned_fd space = root_job_find(job, version);
    return space < 0 ? -1 : root_job_join(space, NULL);
}

/* In a child of slurmstepd. Tasks come by before the mark is set: Slurm itself and the SPANK plugin put these where they belong. There is no list where
   each task had ended before the plugin could look, by another process of its user's for instance. */
static void submit(uint32_t job) {
    root_reason_clear();
    if (*slipway_step_groups == 0) root_fail("none of the step's tasks lived long enough to show its cgroups");
    else if (root_group_enter(slipway_step_groups) == 0 && root_group_join(job) == 0 && root_group_offer() == 0) return;
    slurm_error("slipway: the task's epilog cannot be put under the limits of job %u: %s", job, root_reason());
    _exit(1); /* Slurm would run it all the same */
}

/* slurmd calls this before it starts a slurmstepd, too, and says that a step is new: slurmstepd stays in the pod, where slurmd finds its socket.
   The mounts of slurmstepd's processes are the SPANK plugin's to move. */
EXPORTED int namespace_g_join(slurm_step_id_t *step, uid_t user, bool is_new) {
    join *next = (join *)dlsym(RTLD_NEXT, "namespace_g_join");
    int result = next ? next(step, user, is_new) : SLURM_SUCCESS;
    if (result != SLURM_SUCCESS || is_new || !spank_context) return result;
    if (spank_context() == S_CTX_REMOTE && slipway_step_has_tasks && getpid() != loader) submit(step->job_id);
    if (spank_context() != S_CTX_SLURMD) return result;
    root_reason_clear();
    if (enter(step->job_id, user) == 0) return SLURM_SUCCESS;
    slurm_error("slipway: a file that was sent to job %u cannot be put into its root: %s", step->job_id, root_reason());
    return SLURM_ERROR;
}

EXPORTED int bind(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    __typeof__(bind) *next = (__typeof__(bind) *)dlsym(RTLD_NEXT, "bind");
    const struct sockaddr *given = address.__sockaddr__;
    in_port_t port = 0;
    if (given != NULL && size >= sizeof(struct sockaddr_in) && given->sa_family == AF_INET) port = ((const struct sockaddr_in *)given)->sin_port;
    if (given != NULL && size >= sizeof(struct sockaddr_in6) && given->sa_family == AF_INET6) port = ((const struct sockaddr_in6 *)given)->sin6_port;
    int on = 1;
    if (port == htons(slipway_held_port)) setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    return next(socket, address, size);
}
