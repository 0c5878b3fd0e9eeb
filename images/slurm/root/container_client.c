/* /usr/lib/slipway/client: srun, scontrol and the rest in a container with --container-mount-slurm. The program that it is called as runs where it is
   installed, in the job's root, with that root's libraries, users, settings and sockets, whatever the image has. It stays its user, with no more rights:
   the user namespace that it makes gives it the one right that it needs, to change its root, and that goes with the program's start.

   It is static: images have other libraries, or none. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "container_ends.h"

static const char *name;

static void __attribute__((noreturn)) stop(const char *what) {
    dprintf(2, "slipway: %s in a container: %s: %s\n", name, what, strerror(errno));
    exit(1);
}

static void write_file(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) stop(path);
    close(file);
}

/* Root of a container with --container-remap-root is the job's user outside, and that is who the client has to be. */
static void become_job_user(void) {
    char user_map[64], group_map[64];
    unsigned user, group;
    FILE *file = fopen(CONTAINER_SLURM "/user", "re");
    if (file == NULL || fscanf(file, "%u %u", &user, &group) != 2) stop(CONTAINER_SLURM "/user");
    fclose(file);
    snprintf(user_map, sizeof user_map, "%u %u 1\n", user, (unsigned)geteuid());
    snprintf(group_map, sizeof group_map, "%u %u 1\n", group, (unsigned)getegid());
    if (unshare(CLONE_NEWUSER) < 0) stop("a user namespace");
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", user_map);
    write_file("/proc/self/gid_map", group_map);
}

int main(int count, char **words) {
    char folder[4096], path[256];
    (void)count;
    name = strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0];
    if (getcwd(folder, sizeof folder) == NULL) strcpy(folder, "/");
    become_job_user();
    if (chroot(CONTAINER_SLURM "/root") < 0) stop(CONTAINER_SLURM "/root");
    if (chdir(folder) < 0 && chdir("/") < 0) stop("/ of the job");
    snprintf(path, sizeof path, "/usr/bin/%.200s", name);
    execv(path, words);
    stop(path);
}
