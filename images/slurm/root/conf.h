/* The settings: key=value lines, # comments, usually /etc/slipway/root/root.conf. Without the file there are no versions: jobs see their pod, where
   it has the folder for it with a /tmp of their own, and sessions of login pods stay as they are. */
#ifndef SLIPWAY_CONF_H
#define SLIPWAY_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define ROOT_CONF_PATH "/etc/slipway/root/root.conf"
enum { ROOT_BINDS_MAX = 128, ROOT_PATH_MAX = 512, ROOT_OUTSIDE_MAX = 16 };

struct root_bind {
    char source[ROOT_PATH_MAX]; /* in the pod */
    char target[ROOT_PATH_MAX]; /* in the version */
    bool is_file;
    bool is_optional; /* left out where the pod has no such path */
    int line;
};

struct root_conf {
    bool has_versions;
    char shared[ROOT_PATH_MAX];
    char tmp[ROOT_PATH_MAX];
    char spool[ROOT_PATH_MAX]; /* slurmd's own folder */
    struct root_bind binds[ROOT_BINDS_MAX]; /* a folder before what lies in it */
    size_t count;
    unsigned outside[ROOT_OUTSIDE_MAX]; /* users whose jobs see the pod itself: health checks look at the node */
    size_t outside_count;
};

/* 1: read, or there is no such file but the folder for /tmp of jobs; 0: neither; -1: faults, all of them in root_reason() with their lines. */
int root_conf_read(const char *path, struct root_conf *conf);

static inline void root_conf_free(struct root_conf *const *conf) { free(*conf); }

/* Freed on every way out of its scope. */
#define owned_conf __attribute__((cleanup(root_conf_free))) struct root_conf *

/* True for a user whose jobs see the pod itself. */
bool root_conf_is_outside(const struct root_conf *conf, unsigned user);

#endif
