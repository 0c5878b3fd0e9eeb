#include "adopted.h"

#include <stdlib.h>
#include <string.h>

#include "enter.h"
#include "owned.h"
#include "reason.h"

/* Slurm's cgroup of processes from outside is called step_extern. The job's own is job_<number> in v1, and in v2 one with a name that tells no
   number (26.05), so the number comes from elsewhere. Only root makes cgroups here: no user can pretend. */
static bool reads_as_adopted(FILE *file) {
    owned_text line = NULL;
    size_t room = 0;
    bool is_adopted = false;
    while (!is_adopted && getline(&line, &room, file) >= 0) is_adopted = strstr(line, "/step_extern") != NULL;
    return is_adopted;
}

static int check_adopted(void) {
    owned_file file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) return root_fail("/proc/self/cgroup: %m");
    return reads_as_adopted(file) ? 0 : root_fail("the session is in no job's cgroup");
}

uint32_t root_adopted_job(const char *text) {
    char *end;
    unsigned long number = text && *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    return number == 0 || number > UINT32_MAX || *end ? 0 : (uint32_t)number;
}

int root_adopted_enter(uint32_t job, root_version version) {
    if (job == 0) return root_fail("pam_slurm_adopt named no job");
    if (check_adopted() < 0) return -1;
    owned_fd space = root_job_find(job, version);
    return space < 0 ? -1 : root_job_join(space, NULL);
}
