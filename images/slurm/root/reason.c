#include "reason.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char kept[4096];

int root_fail(const char *format, ...) {
    int saved = errno;
    size_t used = strlen(kept);
    if (used && used + 1 < sizeof kept) kept[used++] = '\n', kept[used] = 0;
    va_list arguments;
    va_start(arguments, format);
    errno = saved; /* for %m */
    vsnprintf(kept + used, sizeof kept - used, format, arguments);
    va_end(arguments);
    errno = saved;
    return -1;
}

const char *root_reason(void) { return kept; }

void root_reason_clear(void) { kept[0] = 0; }
