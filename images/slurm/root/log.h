/* /var/log is of the node, not of the shared version: what jobs and sessions log there is seen by no other node, and no two write to one file.

   A job has a tmpfs of its own. Sessions of a login pod share a folder of the pod, one for each version, so apt's history outlives a session.
   Both begin with the version's folders, their owners and modes, and none of its files: programs expect the folders that their packages
   brought. Folders that packages bring in sessions get into the version when the next session begins. */
#ifndef SLIPWAY_LOG_H
#define SLIPWAY_LOG_H

#include <stdbool.h>

/* Mounts it below `root`, the version, opened. Where /var/log of the version is a link, it is left alone; where there is none,
   and the volume takes none as it is full or read-only, jobs and sessions do without. */
int root_log_place(int root, const char *version, bool is_job);

#endif
