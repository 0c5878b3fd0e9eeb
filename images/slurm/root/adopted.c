#include "adopted.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "enter.h"
#include "reason.h"

/* The number in `.../job_<number>/step_extern...`, with which Slurm names the cgroups of its cgroup/v1 and v2 plugins; 0 where there is none. */
static uint32_t job_of_path(const char *path) {
    static const char job[] = "/job_", step[] = "/step_extern";
    for (const char *at = path; (at = strstr(at, job)); at++) {
        char *end;
        unsigned long number = strtoul(at + sizeof job - 1, &end, 10);
        if (at[sizeof job - 1] >= '1' && at[sizeof job - 1] <= '9' && number <= UINT32_MAX && strncmp(end, step, sizeof step - 1) == 0) return (uint32_t)number;
    }
    return 0;
}

/* All hierarchies that name a job must name the same one. Only root makes cgroups here, so no user can pretend. */
static int read_job(uint32_t *job) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) return root_fail("/proc/self/cgroup: %m");
    char *line = NULL;
    size_t room = 0;
    int result = 0;
    *job = 0;
    while (result == 0 && getline(&line, &room, file) >= 0) {
        uint32_t found = job_of_path(line);
        if (found && *job && found != *job) result = root_fail("the session is in two jobs, %u and %u", *job, found);
        if (found) *job = found;
    }
    free(line);
    fclose(file);
    return result < 0 || *job ? result : root_fail("the session is in no job's cgroup");
}

int root_adopted_enter(root_version version) {
    uint32_t job;
    if (read_job(&job) < 0) return -1;
    int space = root_job_find(job, version);
    if (space < 0) return -1;
    int result = root_job_join(space, NULL);
    close(space);
    return result;
}
