/* How many processes a job may have on a node. */
#ifndef SLIPWAY_LIMIT_H
#define SLIPWAY_LIMIT_H

#include <stdbool.h>

/* `setting`, such as 4096+256, is a base and an amount for each CPU; `cpus` is a list of CPUs such as 0-3,6. False where the setting has another
   form. */
bool root_limit_read(const char *setting, const char *cpus, unsigned long *most);

#endif
