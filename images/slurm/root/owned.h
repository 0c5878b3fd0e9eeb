/* What a variable opened is closed on every way out of its scope. errno stays as it was, so that a reason can still name it. */
#ifndef SLIPWAY_OWNED_H
#define SLIPWAY_OWNED_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void root_close_fd(const int *fd) {
    int failure = errno;
    if (*fd >= 0) close(*fd);
    errno = failure;
}

static inline void root_close_file(FILE *const *file) {
    int failure = errno;
    if (*file) fclose(*file);
    errno = failure;
}

static inline void root_close_folder(DIR *const *folder) {
    int failure = errno;
    if (*folder) closedir(*folder);
    errno = failure;
}

/* Closes it now instead. */
static inline void root_close_now(int *fd) {
    root_close_fd(fd);
    *fd = -1;
}

/* Hands it to a callee or the caller, which closes it. */
static inline int root_hand_over(int *fd) {
    int given = *fd;
    *fd = -1;
    return given;
}

/* A folder to read, from its descriptor, which is closed where that fails; NULL with errno. */
static inline DIR *root_read_folder(int fd) {
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) root_close_fd(&fd);
    return folder;
}

static inline void root_free_text(char *const *text) { free(*text); }

#define owned_fd __attribute__((cleanup(root_close_fd))) int
#define owned_file __attribute__((cleanup(root_close_file))) FILE *
#define owned_folder __attribute__((cleanup(root_close_folder))) DIR *
#define owned_text __attribute__((cleanup(root_free_text))) char *

#endif
