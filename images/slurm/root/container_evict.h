/* What root does with the cache of images: takes away what a job left, and images that nobody uses where there are too many (gone.h). It follows no link,
   looks at no more than a bounded part of a user's folders, and believes no user more than the order in which that user's own images go. */
#ifndef SLIPWAY_CONTAINER_EVICT_H
#define SLIPWAY_CONTAINER_EVICT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Both take the open folder of all users. */
int container_forget_job(int base, uid_t user, uint32_t job);

/* What jobs left whose epilog never ran, for instance because the pod ended first: `pins` has a file for each job that runs. Where a user has
   very many, some of them. True where something was taken away. */
bool container_sweep(int base, const char *pins);

#define CONTAINER_MIB_MAX (1UL << 30)

/* Until the sizes of all users' images, with what pulls have reserved, are within `bound_mib` (0: no bound) and an eighth of the disk is free, or all
   that are left are in use. Those go first that were used longest ago, whoever's they are. */
int container_evict(int base, unsigned long bound_mib);

/* Prologs and epilogs ask the remover for that. */
int container_ask(int base, unsigned long bound_mib);
bool container_is_asked(int base, unsigned long *bound_mib);

/* Whether less than an eighth of the disk is free. */
bool container_is_disk_short(int base);

/* For a step that may pull: an empty reservation, in force while the caller, or a process that it forked, has it open. `number` is no other's of the
   node: the caller's process. */
int container_open_reservation(int base, unsigned number);

struct container_room {
    enum { CONTAINER_ROOM, CONTAINER_CACHE_FULL, CONTAINER_DISK_FULL } verdict;
    unsigned long mib; /* of the cache in use or reserved; free on the disk */
    unsigned long bound_mib;
};

/* Before a pull of `user`: removes images that nobody uses until `needed` MiB fit beside what others have reserved, and reserves them in `mine`, or says
   why not. Where they cannot fit by the sizes that users have noted, nothing is removed. `needed` 0 gives the reservation back. -1 with a reason where it cannot tell. */
int container_reserve(int base, uid_t user, int mine, unsigned long bound_mib, unsigned long needed, struct container_room *answer);

#endif
