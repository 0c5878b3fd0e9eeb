#include "limit.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned long count_listed(const char *list) {
    unsigned long count = 0;
    for (const char *at = list; *at; at += *at == ',') {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (end == at || last < first) return count;
        count += last - first + 1;
        at = end;
    }
    return count;
}

bool root_limit_read(const char *setting, const char *cpus, unsigned long *most) {
    unsigned long base, each;
    if (sscanf(setting, "%lu+%lu", &base, &each) != 2) return false;
    *most = base + each * count_listed(cpus);
    return true;
}
