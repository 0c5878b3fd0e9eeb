#include "efficiency.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef char figure[48];

static const char *write_time(uint64_t us, figure text) {
    uint64_t s = (us + 500000) / 1000000, days = s / 86400;
    int used = days ? snprintf(text, sizeof(figure), "%" PRIu64 "-", days) : 0;
    snprintf(text + used, sizeof(figure) - (size_t)used, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s % 86400 / 3600, s / 60 % 60, s % 60);
    return text;
}

static const char *write_size(uint64_t bytes, figure text) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double size = (double)bytes;
    size_t at = 0;
    for (; size >= 1024 && at < 4; at++) size /= 1024;
    snprintf(text, sizeof(figure), "%.2f %s", size, units[at]);
    return text;
}

static double share(double part, double whole) { return whole > 0 ? part / whole * 100 : 0; }

size_t efficiency_write(const struct efficiency *given, char text[EFFICIENCY_MAX]) {
    figure cpu, core, wall, used, granted, others = "";
    double all = (double)given->wall_us * (double)given->cpus;
    if (given->nodes > 1) snprintf(others, sizeof others, ", one of its %" PRIu32 " nodes", given->nodes);
    int length = snprintf(text, EFFICIENCY_MAX,
                          "\nJob %" PRIu32 " on %.64s%s, from the start of its script to the end (the whole job: seff %" PRIu32 ")\n"
                          "Cores: %lu\nWall-clock time: %s\n",
                          given->job, given->node, others, given->job, given->cpus, write_time(given->wall_us, wall));
    if (given->has_cpu)
        length += snprintf(text + length, EFFICIENCY_MAX - (size_t)length, "CPU Utilized: %s\nCPU Efficiency: %.2f%% of %s core-walltime\n",
                           write_time(given->cpu_us, cpu), share((double)given->cpu_us, all), write_time((uint64_t)all, core));
    length += snprintf(text + length, EFFICIENCY_MAX - (size_t)length, "Memory Utilized: %s at most, cached files included\n", write_size(given->used, used));
    if (given->granted)
        length += snprintf(text + length, EFFICIENCY_MAX - (size_t)length, "Memory Efficiency: %.2f%% of %s\n", share((double)given->used, (double)given->granted),
                           write_size(given->granted, granted));
    return (size_t)length;
}

uint64_t efficiency_cpu_us(const char *text) {
    const char *usage = strstr(text, "usage_usec ");
    return usage ? strtoull(usage + strlen("usage_usec "), NULL, 10) : strtoull(text, NULL, 10) / 1000;
}
