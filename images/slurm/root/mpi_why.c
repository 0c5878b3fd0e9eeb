#include "mpi_why.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "owned.h"

void mpi_why_write(const char *folder, const char *why) {
    char made[PATH_MAX], path[PATH_MAX];
    snprintf(made, sizeof made, "%s/failed.%d", folder, getpid());
    snprintf(path, sizeof path, "%s/failed", folder);
    owned_fd file = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t size = strnlen(why, MPI_WHY_MAX - 1);
    if (file < 0 || write(file, why, size) != (ssize_t)size || link(made, path) < 0) errno = 0; /* a reason that cannot be kept is none */
    unlink(made);
}

bool mpi_why_read(const char *folder, char *why, size_t room) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/failed", folder);
    owned_fd file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, why, room - 1);
    if (size < 0) return false;
    why[size] = 0;
    for (char *at = why; *at; at++) {
        if (*at == ',') *at = ';';
        else if ((unsigned char)*at < ' ') *at = ' ';
    }
    return true;
}
