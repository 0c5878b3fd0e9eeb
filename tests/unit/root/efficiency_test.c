/* The report at a job's end: what it says, and which figures of control groups it reads. */
#include "efficiency.c"

#include <limits.h>

#include "harness.h"

static void run_usage(char *text, size_t length) {
    (void)length;
    (void)efficiency_cpu_us(text);
}

static const char *const words[] = {"usage_usec 12\nuser_usec 7\n", "12000000\n", "usage_usec ", "18446744073709551616", NULL};
const struct fuzz fuzzes[] = {{"usage", run_usage, words}, {0}};

void check(void) {
    char text[EFFICIENCY_MAX];
    struct efficiency given = {.node = "cpu-0", .job = 7, .nodes = 2, .cpus = 4, .has_cpu = true, .cpu_us = 7200000000, .wall_us = 3600000000, .used = 1 << 30, .granted = 4ULL << 30};
    CHECK(efficiency_cpu_us("usage_usec 12\nuser_usec 7\n") == 12 && efficiency_cpu_us("12000\n") == 12 && efficiency_cpu_us("") == 0);
    CHECK(efficiency_write(&given, text) == strlen(text));
    CHECK(strstr(text, "\nJob 7 on cpu-0, one of its 2 nodes, ") && strstr(text, "CPU Efficiency: 50.00% of 04:00:00 core-walltime\n"));
    CHECK(strstr(text, "Wall-clock time: 01:00:00\n") && strstr(text, "Memory Efficiency: 25.00% of 4.00 GB\n"));
    given.has_cpu = false;
    efficiency_write(&given, text);
    CHECK(strstr(text, "Wall-clock time: 01:00:00\nMemory Utilized: "));
    given = (struct efficiency){.node = "n", .job = UINT32_MAX, .nodes = UINT32_MAX, .cpus = ULONG_MAX, .has_cpu = true, .cpu_us = UINT64_MAX, .wall_us = UINT64_MAX, .used = UINT64_MAX};
    CHECK(efficiency_write(&given, text) == strlen(text) && strstr(text, "Memory Efficiency") == NULL);
}
