#include "adopted.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "enter.h"
#include "owned.h"
#include "reason.h"

/* Slurm's cgroup of processes from outside is called step_extern. The job's own is job_<number> in v1, and in v2 one with a name that tells no
   number (26.05), so the number comes from elsewhere. Only root makes cgroups here: no user can pretend. */
static int check_adopted(void) {
    owned_file file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) return root_fail("/proc/self/cgroup: %m");
    owned_text line = NULL;
    size_t room = 0;
    bool is_adopted = false;
    while (!is_adopted && getline(&line, &room, file) >= 0) is_adopted = strstr(line, "/step_extern") != NULL;
    return is_adopted ? 0 : root_fail("the session is in no job's cgroup");
}

int root_adopted_enter(const char *job, root_version version) {
    char *end;
    unsigned long number = job && *job >= '1' && *job <= '9' ? strtoul(job, &end, 10) : 0;
    if (number == 0 || number > UINT32_MAX || *end) return root_fail("pam_slurm_adopt named no job");
    if (check_adopted() < 0) return -1;
    owned_fd space = root_job_find((uint32_t)number, version);
    return space < 0 ? -1 : root_job_join(space, NULL);
}
