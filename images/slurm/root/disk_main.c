/* Tries out on a folder of the node's disk what jobs are to have of it: a small disk is made as theirs are, and filled up. For the worker's program,
   which starts no slurmd where a limit would not hold. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "owned.h"
#include "reason.h"

enum { MIB = 8 };

static int fill_up(const char *folder) {
    static char block[1 << 20];
    char path[4096];
    snprintf(path, sizeof path, "%s/scratch/full", folder);
    owned_fd file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return root_fail("%s: %m", path);
    for (int written = 0; written <= MIB; written++)
        if (write(file, block, sizeof block) < 0) return errno == ENOSPC ? 0 : root_fail("writing to a disk for jobs: %m");
    return root_fail("a disk of %d MiB took more", MIB);
}

int main(int count, char **words) {
    struct root_disks disks = {.scratch_mib = MIB};
    if (count != 2) return 2;
    int result = unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ? root_fail("a mount namespace: %m") : 0;
    if (result == 0) result = root_disks_put(&disks, words[1]);
    if (result == 0) result = fill_up(words[1]);
    if (result < 0) fprintf(stderr, "%s\n", root_reason());
    return result < 0;
}
