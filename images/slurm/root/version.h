/* Versions on the shared volume: versions/<version>/, the link `current`, and the links jobs/<jobid> that hold what each job uses. */
#ifndef SLIPWAY_VERSION_H
#define SLIPWAY_VERSION_H

#include <stdbool.h>
#include <stdint.h>

enum { ROOT_VERSION_MAX = 64 };
typedef char root_version[ROOT_VERSION_MAX + 1];

/* [A-Za-z0-9][A-Za-z0-9._-]{0,63} */
bool root_version_is_name(const char *text);

/* The shared folder, opened; -1 where it is missing or open to all. */
int root_shared_open(const char *path);

/* A version's folder, opened; no link is followed. */
int root_version_open(int shared, const char *version);

/* The version that `current` names. */
int root_version_current(int shared, root_version version);

/* The version of a job. The first of its nodes decides, by making a link, and the others read it: symlink(2) never replaces.
   `wanted` is NULL or what the job asked for. */
int root_version_of_job(int shared, uint32_t job, const char *wanted, root_version version);

/* Removes what root_version_of_job wrote, once no node can ask for it any more. */
int root_version_forget(int shared, uint32_t job);

#endif
