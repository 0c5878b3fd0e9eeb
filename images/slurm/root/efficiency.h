/* What a job used on a node, in the words of seff. */
#ifndef SLIPWAY_EFFICIENCY_H
#define SLIPWAY_EFFICIENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct efficiency {
    const char *node;
    uint32_t job, nodes;      /* nodes of the whole job */
    unsigned long cpus;       /* of the job on this node */
    uint64_t cpu_us, wall_us; /* used by all its processes here; since its script began */
    bool has_cpu;             /* on v1, Slurm makes groups of cpuacct for accounting alone */
    uint64_t used, granted;   /* bytes: the most at one time, with files in the page cache; granted is 0 where there is no limit */
};

enum { EFFICIENCY_MAX = 1024 };

/* Lines for a person; gives their length. */
size_t efficiency_write(const struct efficiency *figures, char text[EFFICIENCY_MAX]);

/* From the files of a job's groups: `usage_usec 12` of cpu.stat (v2), or a number of nanoseconds (v1's cpuacct.usage). 0 where there is none. */
uint64_t efficiency_cpu_us(const char *text);

#endif
