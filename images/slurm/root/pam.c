/* PAM module: a session runs in the current version of the shared root. The last session line, so that what others do to the pod is done:
   session required /usr/lib/slipway/pam_slipway_root.so [conf=/path] [adopted]

   `adopted`, on workers: in the root of the job that pam_slurm_adopt has put the session into, and nowhere else. The process that opens the
   session, sshd's for this connection, moves itself, and with it all that it starts. Needs CAP_SYS_ADMIN, and CAP_SETPCAP where setuid
   programs get rights: who becomes root in a session is root of the version, and not of the pod. */
#include <linux/capability.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <unistd.h>

#include "adopted.h"
#include "enter.h"
#include "group.h"
#include "mig.h"
#include "reason.h"

#define EXPORTED __attribute__((visibility("default")))

/* To the log, to stderr where sshd -e logs, and to the user. */
static int refuse(pam_handle_t *handle) {
    char text[4096];
    snprintf(text, sizeof text, "%s", root_reason());
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        pam_syslog(handle, LOG_ERR, "%s", line);
        dprintf(STDERR_FILENO, "pam_slipway_root: session refused: %s\n", line);
        pam_error(handle, "slipway: %s", line);
    }
    return PAM_SESSION_ERR;
}

/* What installing packages takes. Without CAP_SYS_ADMIN there is no way back into the pod's mounts, without CAP_SYS_PTRACE none into its processes. */
static const int kept[] = {CAP_AUDIT_WRITE, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETFCAP, CAP_SETGID, CAP_SETUID, CAP_SYS_CHROOT};

static int bound(void) {
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
        bool is_kept = false;
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) is_kept = is_kept || kept[i] == capability;
        if (is_kept || prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 0 || prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return 0; /* nothing that the session starts gets any */
        return root_fail("taking capability %d from the session: %m. The pod needs SETPCAP, or allowPrivilegeEscalation: false", capability);
    }
    return 0;
}

/* What holds for tasks of jobs holds for a session that is one of a job's processes, in a versioned root or not. */
static int submit(pam_handle_t *handle, uint32_t job) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return root_fail("taking setuid programs their rights: %m");
    if (root_group_join(job) < 0) return -1;
    if (root_group_offer() < 0 || root_group_spare() < 0) { /* costs no session */
        pam_syslog(handle, LOG_ERR, "%s", root_reason());
        root_reason_clear();
    }
    return 0;
}

/* As in the job's tasks: a debugger sees the GPUs that the job sees. */
static int show_gpus(pam_handle_t *handle) {
    static char setting[ROOT_MIG_MAX + 32];
    const char *visible = root_gpus_visible();
    if (*visible == 0) return 0;
    snprintf(setting, sizeof setting, "CUDA_VISIBLE_DEVICES=%s", visible);
    return pam_putenv(handle, setting) == PAM_SUCCESS ? 0 : root_fail("cannot set CUDA_VISIBLE_DEVICES");
}

static int enter(pam_handle_t *handle, const char *path, bool is_adopted, struct root_conf *conf) {
    uint32_t job = is_adopted ? root_adopted_job(pam_getenv(handle, "SLURM_JOB_ID")) : 0;
    if (is_adopted && submit(handle, job) < 0) return -1;
    if (is_adopted) root_mig_keep();
    int found = root_conf_read(path, conf);
    if (found <= 0 || (!conf->has_versions && !is_adopted)) return found < 0 ? -1 : 0;
    char setting[sizeof(root_version) + 32];
    root_version version;
    if ((is_adopted ? root_adopted_enter(job, version) : root_session_enter(conf, version)) < 0) return -1;
    if (bound() < 0) return -1;
    if (is_adopted && show_gpus(handle) < 0) return -1;
    if (*version == 0) return 1;
    snprintf(setting, sizeof setting, "SLIPWAY_ROOT_VERSION=%s", version);
    return pam_putenv(handle, setting) == PAM_SUCCESS ? 1 : root_fail("cannot set SLIPWAY_ROOT_VERSION");
}

EXPORTED int pam_sm_open_session(pam_handle_t *handle, int flags, int count, const char **arguments) {
    (void)flags;
    const char *path = ROOT_CONF_PATH;
    bool is_adopted = false;
    root_reason_clear();
    for (int i = 0; i < count; i++) {
        if (strncmp(arguments[i], "conf=/", 6) == 0) path = arguments[i] + 5;
        else if (strcmp(arguments[i], "adopted") == 0) is_adopted = true;
        else root_fail("an argument other than conf=/path and adopted: %s", arguments[i]);
    }
    owned_conf conf = malloc(sizeof *conf);
    if (conf == NULL) root_fail("out of memory");
    int result = conf == NULL || *root_reason() ? -1 : enter(handle, path, is_adopted, conf);
    return result < 0 ? refuse(handle) : PAM_SUCCESS;
}

EXPORTED int pam_sm_close_session(pam_handle_t *handle, int flags, int count, const char **arguments) {
    (void)handle, (void)flags, (void)count, (void)arguments;
    return PAM_SUCCESS;
}
