/* How many processes a job may have on a node. */
#ifndef SLIPWAY_LIMIT_H
#define SLIPWAY_LIMIT_H

#include <stdbool.h>

/* `setting`: 4096+256 stands for so many, and so many more for each CPU; `cpus`: a list such as 0-3,6. False for another form of the setting. */
bool root_limit_read(const char *setting, const char *cpus, unsigned long *most);

#endif
