/* SPANK plugin: every task of a job runs in the version of the shared root that the job has.

   slurmstepd stays outside, for its plugins, cgroups and spool. What it does itself happens in the pod's file system, therefore:
   --output, --error and --input name files of the pod. Those below a mount= line, homes for instance, are the same files inside; with
   --output=/tmp/x the file lies in the pod's /tmp, not in the job's. So it is with sbcast to /tmp, and with srun's --task-epilog, which
   runs as its user outside. The folder that a job starts in must exist in the pod, too; inside it is looked up again. */
#include <errno.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "enter.h"
#include "place.h"
#include "reason.h"
#include "version.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(slipway_root, 1)
spank_f slurm_spank_init, slurm_spank_job_prolog, slurm_spank_job_epilog, slurm_spank_task_init_privileged, slurm_spank_task_init;
#pragma GCC visibility pop

static const char *conf_path = ROOT_CONF_PATH;
static char bad_argument[256];
static root_version asked; /* by --root-version */
static bool is_inside; /* or stays outside, as it should */
static char start_folder[PATH_MAX];

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

/* slurmd's start. What jobs start outside the root, such as a --task-epilog, is under this too. */
static int seal(void) {
    struct root_conf *conf = NULL;
    int result = read_settings(&conf); /* faults in it are for the jobs to meet and tell */
    free(conf);
    root_reason_clear();
    if (result == 0 || root_seal() == 0) return ESPANK_SUCCESS;
    complain();
    return ESPANK_ERROR;
}

int slurm_spank_init(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    spank_context_t context = spank_context();
    if (context == S_CTX_SLURMD) return seal();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return ESPANK_SUCCESS;
    return spank_option_register(spank, &version_option);
}

static bool is_outside(spank_t spank, const struct root_conf *conf) {
    uid_t user;
    if (spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS) return false;
    for (size_t i = 0; i < conf->outside_count; i++)
        if (conf->outside[i] == user) return true;
    return false;
}

/* Whatever fails here, the job's tasks meet and tell: a failed prolog would drain the node. */
int slurm_spank_job_prolog(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    struct root_conf *conf = NULL;
    uint32_t job;
    char *wanted = NULL;
    root_version version;
    int space = -1, result = read_settings(&conf);
    if (result > 0 && spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) result = root_fail("Slurm names no job");
    if (result > 0 && spank_option_getopt(spank, &version_option, &wanted) != ESPANK_SUCCESS) wanted = NULL;
    if (result > 0 && root_job_close(conf, job) < 0) complain(); /* what a requeued job left, or one that had the number before */
    root_reason_clear();
    if (result > 0 && !is_outside(spank, conf)) result = space = root_job_open(conf, job, wanted, version);
    if (result < 0) complain();
    if (space >= 0) close(space);
    free(conf);
    return ESPANK_SUCCESS;
}

/* The job's version in the shared folder is for nodes that have not begun yet, and all have. A later job of the number chooses anew. */
static void forget(const struct root_conf *conf, uint32_t job) {
    int shared = root_shared_open(conf->shared);
    if (shared < 0 || root_version_forget(shared, job) < 0) complain();
    if (shared >= 0) close(shared);
}

int slurm_spank_job_epilog(spank_t spank, int count, char **arguments) {
    read_arguments(count, arguments);
    struct root_conf *conf = NULL;
    uint32_t job;
    int result = read_settings(&conf);
    if (result > 0 && spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) result = root_fail("Slurm names no job");
    if (result > 0) result = root_job_close(conf, job);
    if (result < 0) complain();
    if (result == 0 && !is_outside(spank, conf)) forget(conf, job);
    free(conf);
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

static int enter(spank_t spank, const struct root_conf *conf) {
    uint32_t job;
    root_version version;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return root_fail("Slurm names no job");
    if (getcwd(start_folder, sizeof start_folder) == NULL || start_folder[0] != '/') strcpy(start_folder, "/tmp");
    int space = root_job_open(conf, job, *asked ? asked : NULL, version);
    if (space < 0 || root_job_join(space, batch_script(spank)) < 0) return -1;
    close(space);
    if (spank_setenv(spank, "SLIPWAY_ROOT_VERSION", version, 1) != ESPANK_SUCCESS) return root_fail("cannot set SLIPWAY_ROOT_VERSION");
    return put_driver_first(spank);
}

/* The task's process has forked and is root still. A failure is kept for slurm_spank_task_init: a task that ends here, before Slurm has
   put it in its cgroup, counts as a fault of the node and drains it. Nothing of the user's runs in between. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    struct root_conf *conf = NULL;
    int result = read_settings(&conf);
    if (result == 0 && *asked) result = root_fail("--root-version=%s: this cluster has no versioned root", asked);
    bool stays = result == 0 || (result > 0 && is_outside(spank, conf));
    is_inside = stays || (result > 0 && enter(spank, conf) == 0);
    if (stays) *start_folder = 0;
    free(conf);
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
        slurm_error("slipway: the job's version of the root has no folder %s for it (%s): going to /tmp instead", start_folder, strerror(errno));
        if (chdir("/tmp") < 0) return ESPANK_ERROR;
    }
    return ESPANK_SUCCESS;
}
