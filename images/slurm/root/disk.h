/* What a node keeps of its disk for each job: /scratch, and a limit for /tmp and /var/tmp together.

   Each is a file system of its own in a file of that size, which is set aside as a whole, by a loop device. The file has no name any more when the
   job begins, and the device goes with the last mount: both are gone with the job's namespace, whatever becomes of slurmd and of epilogs. Project
   quotas would not do: the owner of a file may take it out of its project (fileattr_set_prepare in Linux' fs/file_attr.c). */
#ifndef SLIPWAY_DISK_H
#define SLIPWAY_DISK_H

#include <stdbool.h>

#define ROOT_DISKS_PATH "/run/slipway/disks"
#define ROOT_SCRATCH "/scratch"

struct root_disks {
    unsigned long tmp_mib, scratch_mib; /* 0: none, and no limit */
    bool tmp_in_memory;                 /* a tmpfs, which counts as the job's memory */
};

/* Words such as `tmp=2048 scratch=10240`, or `tmp-in-memory=512`. */
bool root_disks_parse(char *text, struct root_disks *disks);

/* From the file that the worker's program has written; without it there are none. -1: with a reason. */
int root_disks_read(const char *path, struct root_disks *disks);

/* In the calling process's own mount namespace: mounts a job's disks at its folder, which only root enters, and at `scratch` in it. */
int root_disks_put(const struct root_disks *disks, const char *folder);

#endif
