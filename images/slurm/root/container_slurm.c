#include "container_slurm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container_ends.h"
#include "container_given.h"
#include "container_inside.h"

static int job_root = -1;

void container_take_root(void) {
    job_root = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (job_root < 0) container_stop("--container-mount-slurm: the job's root: %m");
}

/* A tmpfs, so that nothing of it is saved with the container. */
static int open_place(int root) {
    char path[32];
    int place = container_make_target(root, CONTAINER_SLURM, true, true);
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    if (place < 0 || mount("tmpfs", path, "tmpfs", MS_NODEV | MS_NOSUID, "mode=755,size=1m") < 0) container_stop("--container-mount-slurm: " CONTAINER_SLURM ": %m");
    close(place);
    return container_open_inside(root, CONTAINER_SLURM, O_PATH | O_DIRECTORY);
}

void container_fill_slurm(int root) {
    static const char *const programs[] = {"sacct",    "sacctmgr", "salloc", "sattach", "sbatch", "sbcast",  "scancel", "scontrol", "scrontab", "sdiag",
                                           "sinfo",    "sprio",    "squeue", "sreport", "srun",   "sshare",  "sstat",   "strigger", "seff"};
    char path[64];
    int place = open_place(root);
    if (place < 0 || mkdirat(place, "root", 0755) < 0 || mkdirat(place, "bin", 0755) < 0) container_stop("--container-mount-slurm: " CONTAINER_SLURM ": %m");
    if (move_mount(job_root, "", place, "root", MOVE_MOUNT_F_EMPTY_PATH) < 0) container_stop("--container-mount-slurm: mounting the job's root: %m");
    int user = openat(place, "user", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (user < 0 || dprintf(user, "%s\n", given.slurm) < 0) container_stop("--container-mount-slurm: " CONTAINER_SLURM "/user: %m");
    close(user);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        snprintf(path, sizeof path, "/usr/bin/%s", programs[i]);
        if (access(path, X_OK) < 0) continue;
        snprintf(path, sizeof path, "bin/%s", programs[i]);
        if (symlinkat(CONTAINER_SLURM "/root/usr/lib/slipway/client", place, path) < 0) container_stop("--container-mount-slurm: %s: %m", path);
    }
    close(place);
    close(job_root);
}
