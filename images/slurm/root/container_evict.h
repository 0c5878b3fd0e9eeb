/* What root does with the cache of images: removes what a job left, and images that nobody uses where there are too many. It follows no link, and
   believes no user more than the order in which that user's own images go. */
#ifndef SLIPWAY_CONTAINER_EVICT_H
#define SLIPWAY_CONTAINER_EVICT_H

#include <stdint.h>
#include <sys/types.h>

/* Both take the open folder of all users. */
int container_forget_job(int base, uid_t user, uint32_t job);

/* What jobs left whose epilog never ran, for instance because the pod ended first: `pins` has a file for each job that runs. */
void container_sweep(int base, const char *pins);

/* Until the images' sizes are within `bound_mib` (0: no bound) and an eighth of the disk is free, or all that are left are in use. */
int container_evict(int base, unsigned long bound_mib);

#endif
