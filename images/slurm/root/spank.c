/* SPANK plugin: every task of a job runs in the version of the shared root that the job has, and under what holds for all jobs, root or not:
   /tmp is the job's own, setuid programs get no rights, the kernel takes a task before a daemon, and processes are limited.

   slurmstepd stays outside, for its plugins, cgroups and spool, but it sees the job's /tmp and /var/tmp as its own: a file of --output, --error and
   --input there is the job's, and none can be in /dev/shm or /run/lock. All other files that it opens are of the pod. Those below a mount= line,
   homes for instance, are the same files inside. So it is with srun's --task-epilog, which runs as its user outside, under the job's limits. The
   folder that a job starts in must exist in the pod, too; inside it is looked up again. bcast.c does the same for files that are sent to a job, and
   sees to those limits. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "enter.h"
#include "group.h"
#include "limit.h"
#include "mig.h"
#include "mount.h"
#include "mpi.h"
#include "mpi_frame.h"
#include "mpi_why.h"
#include "owned.h"
#include "reason.h"
#include "run.h"
#include "version.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(slipway_root, 1)
spank_f slurm_spank_init, slurm_spank_init_post_opt, slurm_spank_local_user_init, slurm_spank_job_prolog, slurm_spank_job_epilog, slurm_spank_task_init_privileged,
    slurm_spank_task_init, slurm_spank_task_post_fork, slurm_spank_task_exit;
int slipway_forget_addresses(void *lua);
#pragma GCC visibility pop

/* Of bcast.c, which slurmstepd has preloaded; a client has none. */
extern char slipway_step_groups[ROOT_GROUPS_MAX] __attribute__((weak, visibility("default")));
extern bool slipway_step_has_tasks __attribute__((weak, visibility("default")));

static const char *conf_path = ROOT_CONF_PATH;
static char bad_argument[256];
static root_version asked; /* by --root-version */
static enum { FAILED, STAYS, ENTERS } step_goes; /* what a step's slurmstepd found out for its tasks */
static int job_space = -1; /* where they enter */
static root_version job_version;
static bool is_inside; /* or stays outside, as it should */
static char start_folder[PATH_MAX];
static bool is_mpi_daemon; /* the task's command brings a PMIx server of its own */

static int take_version(int value, const char *argument, int is_remote) {
    (void)value;
    if (argument && root_version_is_name(argument)) {
        strcpy(asked, argument);
        return 0;
    }
    if (!is_remote) slurm_error("slipway: --root-version takes the name of a version: letters, digits, '.', '_' and '-', 64 at most");
    return -1;
}

static struct spank_option version_option = {
    "root-version", "NAME", "version of the shared root to run in, instead of the current one", 1, 0, take_version,
};

static void read_arguments(int count, char **arguments) {
    for (int i = 0; i < count; i++) {
        if (strncmp(arguments[i], "conf=/", 6) == 0) conf_path = arguments[i] + 5;
        else snprintf(bad_argument, sizeof bad_argument, "plugstack.conf gives slipway_root.so an argument other than conf=/path: %s", arguments[i]);
    }
}

/* 1, 0 for off, -1. */
static int read_settings(struct root_conf **conf) {
    root_reason_clear();
    if (*bad_argument) return root_fail("%s", bad_argument);
    if ((*conf = malloc(sizeof **conf)) == NULL) return root_fail("out of memory");
    return root_conf_read(conf_path, *conf);
}

static void complain(void) {
    char text[4096];
    snprintf(text, sizeof text, "%s", root_reason());
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) slurm_error("slipway: %s", line);
}

/* For the node's log: the user can do nothing about it. */
static void note(void) {
    if (*root_reason()) slurm_info("slipway: %s", root_reason());
    root_reason_clear();
}

/* slurmd's start. A kernel too old for a versioned root may be too old for this as well, and without one renounce() does for jobs. */
static int seal(void) {
    owned_conf conf = NULL;
    int result = read_settings(&conf); /* faults in it are for the jobs to meet and tell */
    bool has_none = result == 0 || (result > 0 && !conf->has_versions);
    root_reason_clear();
    if (root_seal() == 0) return ESPANK_SUCCESS;
    complain();
    return has_none ? ESPANK_SUCCESS : ESPANK_ERROR;
}

/* For all that comes of the calling thread. Mounts may come after slurmd's start, automounted homes for one: this holds for programs there, too. */
static int renounce(void) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) return ESPANK_SUCCESS;
    slurm_error("slipway: taking setuid programs their rights: %m");
    return ESPANK_ERROR;
}

int slurm_spank_init(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    spank_context_t context = spank_context();
    if (context == S_CTX_SLURMD) return seal();
    if (context == S_CTX_REMOTE && renounce() != ESPANK_SUCCESS) return ESPANK_ERROR;
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return ESPANK_SUCCESS;
    return spank_option_register(spank, &version_option);
}

static bool is_outside(spank_t spank, const struct root_conf *conf) {
    uid_t user;
    return spank_get_item(spank, S_JOB_UID, &user) == ESPANK_SUCCESS && root_conf_is_outside(conf, user);
}

/* Of a job's prolog or epilog on this node, in a process of their own. Slurm's PrologEpilogTimeout would drain the node. */
enum { SCRIPT_S = 150 }; /* more than the waits for locks (lock.h) */

static void *end_late(void *none) {
    const struct timespec time = {.tv_sec = SCRIPT_S};
    (void)none;
    nanosleep(&time, NULL);
    slurm_error("slipway: the job's prolog or epilog has taken %d s and is given up; what it left is removed later", SCRIPT_S);
    _exit(0);
}

static void begin_script(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_late, NULL) == 0) pthread_detach(thread);
}

static bool is_known(spank_t spank, uint32_t *job, uid_t *user) {
    return spank_get_item(spank, S_JOB_ID, job) == ESPANK_SUCCESS && spank_get_item(spank, S_JOB_UID, user) == ESPANK_SUCCESS;
}

/* Whatever fails here, the job's tasks meet and tell: a failed prolog would drain the node. Nothing here looks into a folder of a user's. */
int slurm_spank_job_prolog(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    begin_script();
    owned_conf conf = NULL;
    uint32_t job;
    uid_t user;
    char *wanted = NULL;
    root_version version;
    owned_fd space = -1;
    int result = read_settings(&conf);
    if (result > 0 && !is_known(spank, &job, &user)) result = root_fail("Slurm names no job");
    if (result > 0 && spank_option_getopt(spank, &version_option, &wanted) != ESPANK_SUCCESS) wanted = NULL;
    if (result > 0 && root_job_close(conf, job, user) < 0) result = -1; /* what a requeued job left, or one that had the number before */
    if (result > 0 && !is_outside(spank, conf)) result = space = root_job_open(conf, job, wanted, version);
    if (result < 0) complain();
    return ESPANK_SUCCESS;
}

/* The job's version in the shared folder is for nodes that have not begun yet, and all have. A later job of the number chooses anew. */
static void forget(const struct root_conf *conf, uint32_t job) {
    owned_fd shared = root_shared_open(conf->shared);
    if (shared < 0 || root_version_forget(shared, job) < 0) complain();
}

int slurm_spank_job_epilog(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    begin_script();
    owned_conf conf = NULL;
    uint32_t job;
    uid_t user;
    bool has_job = is_known(spank, &job, &user);
    if (has_job) root_group_remove(job);
    int result = read_settings(&conf);
    if (result > 0 && !has_job) result = root_fail("Slurm names no job");
    if (result > 0) result = root_job_close(conf, job, user);
    if (result < 0) complain();
    if (result == 0 && conf->has_versions && !is_outside(spank, conf)) forget(conf, job);
    return ESPANK_SUCCESS;
}

static const char *batch_script(spank_t spank) {
    uint32_t step;
    int count;
    char **words;
    if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step != SLURM_BATCH_SCRIPT) return NULL;
    return spank_get_item(spank, S_JOB_ARGV, &count, &words) == ESPANK_SUCCESS && count > 0 ? words[0] : NULL;
}

static int put_driver_first(spank_t spank) {
    static char given[65536], path[sizeof given + 64]; /* a task's process calls it once */
    if (access(ROOT_DRIVER_BIN, F_OK) < 0) return 0;
    spank_err_t found = spank_getenv(spank, "PATH", given, sizeof given);
    if (found == ESPANK_NOSPACE) return root_fail("the job's PATH is longer than 64 KiB");
    if (found != ESPANK_SUCCESS) strcpy(given, "/usr/local/bin:/usr/bin:/bin");
    if (strncmp(given, ROOT_DRIVER_BIN ":", sizeof ROOT_DRIVER_BIN) == 0) return 0;
    snprintf(path, sizeof path, "%s:%s", ROOT_DRIVER_BIN, given);
    return spank_setenv(spank, "PATH", path, 1) == ESPANK_SUCCESS ? 0 : root_fail("cannot set PATH");
}

/* The pod's settings for processes of a job. */
static void limit(spank_t spank) {
    const char *setting = getenv("SLIPWAY_JOB_PROCESSES");
    char *cpus = NULL;
    uint32_t job;
    unsigned long most;
    if (setting == NULL) return;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_ALLOC_CORES, &cpus) != ESPANK_SUCCESS) return;
    if (!root_limit_read(setting, cpus ? cpus : "", &most)) return;
    root_reason_clear();
    root_group_limit(job, most);
    note();
}

static int prepare(spank_t spank, const struct root_conf *conf) {
    uint32_t job;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return root_fail("Slurm names no job");
    job_space = root_job_open(conf, job, *asked ? asked : NULL, job_version);
    return job_space < 0 ? -1 : root_step_cover(conf, job, job_space);
}

/* srun; and a step's slurmstepd, before it opens the step's files. A failure is kept for slurm_spank_task_init: one of slurmstepd's own counts as a fault of
   the node and drains it. So it should where slurmstepd cannot be kept off the node's folders: no user brings that about. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    uint32_t step;
    if (spank_context() == S_CTX_LOCAL) root_mpi_open();
    if (spank_context() != S_CTX_REMOTE) return ESPANK_SUCCESS;
    limit(spank);
    if (spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == SLURM_EXTERN_CONT) return ESPANK_SUCCESS;
    owned_conf conf = NULL;
    int result = read_settings(&conf);
    if (result == 0 && *asked) result = root_fail("--root-version=%s: this cluster has no versioned root", asked);
    if (result == 0 || (result > 0 && is_outside(spank, conf))) step_goes = STAYS;
    else if (result > 0 && prepare(spank, conf) == 0) step_goes = ENTERS;
    root_mpi_prepare();
    if (step_goes != FAILED || root_step_refuse() == 0) return ESPANK_SUCCESS;
    complain();
    return ESPANK_ERROR;
}

static int enter(spank_t spank) {
    if (getcwd(start_folder, sizeof start_folder) == NULL || start_folder[0] != '/') strcpy(start_folder, "/tmp");
    if (root_job_join(job_space, *job_version ? batch_script(spank) : NULL) < 0) return -1;
    if (*job_version == 0) return 0;
    if (spank_setenv(spank, "SLIPWAY_ROOT_VERSION", job_version, 1) != ESPANK_SUCCESS) return root_fail("cannot set SLIPWAY_ROOT_VERSION");
    return put_driver_first(spank);
}

/* The user's own word counts, but not ours of a step around this one. */
static bool is_mpi_guarded(spank_t spank) {
    char value[sizeof ROOT_MPI_VALUE + MPI_WHY_MAX + 4];
    return spank_getenv(spank, ROOT_MPI_NAME, value, sizeof value) == ESPANK_SUCCESS && strncmp(value, ROOT_MPI_VALUE, strcspn(ROOT_MPI_VALUE, "%")) == 0;
}

static void set_mpi_guard(spank_t spank, const char *why, int replaces) {
    char value[sizeof ROOT_MPI_VALUE + MPI_WHY_MAX + 4], reason[MPI_WHY_MAX + 4] = "";
    if (*why) snprintf(reason, sizeof reason, " (%s)", why);
    snprintf(value, sizeof value, ROOT_MPI_VALUE, reason);
    spank_setenv(spank, ROOT_MPI_NAME, value, replaces);
}

/* What a task's environment says of MPI, until it has a server. */
static void guard_mpi(spank_t spank) {
    int count;
    char **words;
    if (batch_script(spank)) return; /* mpirun in it has its own */
    if (is_mpi_guarded(spank)) spank_unsetenv(spank, ROOT_MPI_NAME);
    is_mpi_daemon = spank_get_item(spank, S_JOB_ARGV, &count, &words) == ESPANK_SUCCESS && count > 0 && mpi_is_daemon(words[0]);
    if (root_mpi_is_for(spank) && !is_mpi_daemon) set_mpi_guard(spank, "", 0);
}

static void join_mpi(spank_t spank) {
    char why[MPI_WHY_MAX];
    if (is_mpi_daemon) return;
    bool is_joined = root_mpi_join(spank, why, sizeof why);
    if (!is_mpi_guarded(spank)) return;
    if (is_joined) spank_unsetenv(spank, ROOT_MPI_NAME);
    else set_mpi_guard(spank, why, 1);
}

/* slurmd knows the place that topology.yaml gives its node, and not the one that slurmctld was told over REST: that is in a file of the pod. */
static void tell_address(spank_t spank) {
    char there[1024], given[1280], kind[16], address[sizeof there + sizeof given], pattern[sizeof there * 8];
    owned_fd file = open(ROOT_ADDRESS, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, there, sizeof there - 1);
    if (length <= 0 || spank_getenv(spank, "SLURM_TOPOLOGY_ADDR_PATTERN", given, sizeof given) != ESPANK_SUCCESS) return;
    there[length] = 0;
    there[strcspn(there, "\n")] = 0;
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(given, "."), given);
    if (*there == 0 || spank_getenv(spank, "SLURM_TOPOLOGY_ADDR", given, sizeof given) != ESPANK_SUCCESS) return;
    const char *node = strrchr(given, '.');
    snprintf(address, sizeof address, "%s.%s", there, node ? node + 1 : given);
    size_t end = (size_t)snprintf(pattern, sizeof pattern, "%s.", kind);
    for (const char *dot = strchr(there, '.'); dot && end < sizeof pattern - sizeof kind - 8; dot = strchr(dot + 1, '.'))
        end += (size_t)snprintf(pattern + end, sizeof pattern - end, "%s.", kind);
    snprintf(pattern + end, sizeof pattern - end, "node");
    spank_setenv(spank, "SLURM_TOPOLOGY_ADDR", address, 1);
    spank_setenv(spank, "SLURM_TOPOLOGY_ADDR_PATTERN", pattern, 1);
}

/* The task's process has forked and is root still. A failure is kept for slurm_spank_task_init: a task that ends here, before Slurm has
   put it in its cgroup, counts as a fault of the node and drains it. Nothing of the user's runs in between. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    uint32_t job;
    if (renounce() != ESPANK_SUCCESS) return ESPANK_ERROR;
    if (root_group_offer() < 0) slurm_info("slipway: %s", root_reason());
    if (spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS && root_group_join(job) < 0) {
        step_goes = FAILED; /* a task without its limit could end those of others */
    }
    guard_mpi(spank);
    tell_address(spank);
    root_mig_keep();
    is_inside = step_goes == STAYS || (step_goes == ENTERS && enter(spank) == 0);
    if (step_goes == STAYS) *start_folder = 0;
    return ESPANK_SUCCESS;
}

/* slurmstepd, which Slurm has put into the job's groups by now. It leaves them only once its later children can find back. */
int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    pid_t task;
    limit(spank);
    if (&slipway_step_has_tasks) slipway_step_has_tasks = true;
    bool is_known = slipway_step_groups && spank_get_item(spank, S_TASK_PID, &task) == ESPANK_SUCCESS;
    if (is_known && root_group_list(task, slipway_step_groups) == 0) root_group_spare();
    note();
    return ESPANK_SUCCESS;
}

int slurm_spank_task_exit(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    root_mpi_task_ended(spank);
    return ESPANK_SUCCESS;
}

/* With its step, srun gets the addresses of the job's nodes. slurmctld lists them at the job's start and does not shorten the list with the job
   (26.05.5): the nodes behind one that is gone have their neighbours' addresses. Without a list, srun asks slurmctld for those of now. The list's
   type is not in Slurm's headers: zeros are an empty one.

   cli_filter.lua calls it, as SPANK's first hook after that comes when the program of --bcast has been sent. It is a function of Lua's that takes and
   returns nothing. */
int slipway_forget_addresses(void *lua) {
    static const char empty[256];
    typedef void set_addresses(const void *list);
    set_addresses *set = (set_addresses *)dlsym(RTLD_DEFAULT, "fwd_set_alias_addrs");
    (void)lua;
    if (set) set(empty);
    return 0;
}

/* srun, when it has its step and before it launches it. */
int slurm_spank_local_user_init(spank_t spank, int count, char **arguments) {
    (void)spank;
    (void)count;
    (void)arguments;
    root_mpi_launch();
    return ESPANK_SUCCESS;
}

/* The task is its user now. The folder is entered here, so that it is one the user may enter. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    int task;
    if (!is_inside) { /* one of a node's tasks speaks for all */
        if (spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task == 0) complain();
        return ESPANK_ERROR;
    }
    if (*start_folder && chdir(start_folder) < 0) {
        slurm_error("slipway: the job has no folder %s (%s): going to /tmp instead", start_folder, strerror(errno));
        if (chdir("/tmp") < 0) return ESPANK_ERROR;
    }
    const char *instances = root_mig_names();
    if (*instances) spank_setenv(spank, "CUDA_VISIBLE_DEVICES", instances, 1);
    join_mpi(spank);
    return ESPANK_SUCCESS;
}
