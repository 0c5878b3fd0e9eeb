#include "conf.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owned.h"
#include "reason.h"

struct seen {
    bool shared, tmp, spool;
};

/* Bound always, or made for each job; a setting for them could only contradict. */
static const char *const kept_paths[] = {"/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"};

static bool is_at_or_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* Absolute, without empty parts, `.`, `..` or a slash at the end: then text comparison tells which lies in which. */
static bool is_plain_path(const char *path) {
    if (path[0] != '/' || path[1] == 0 || strlen(path) >= ROOT_PATH_MAX) return false;
    for (const char *part = path; *part;) {
        size_t length = strcspn(++part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.')) return false;
        part += length;
    }
    return true;
}

static int fault(const char *file, int line, const char *what, const char *given) {
    return root_fail("%s:%d: %s: %.600s", file, line, what, given);
}

static int read_folder(const char *file, int line, const char *value, char *into, bool *is_set) {
    if (!is_plain_path(value)) return fault(file, line, "not an absolute path without . and ..", value);
    if (*is_set) return fault(file, line, "given a second time", value);
    *is_set = true;
    strcpy(into, value);
    return 0;
}

static int read_bind(const char *file, int line, char *value, bool is_file, bool is_optional, struct root_conf *conf) {
    if (conf->count == ROOT_BINDS_MAX) return fault(file, line, "more than 128 mounts and files", value);
    char *colon = strchr(value, ':');
    if (colon) *colon = 0;
    const char *target = colon ? colon + 1 : value;
    if (!is_plain_path(value)) return fault(file, line, "not an absolute path without . and ..", value);
    if (!is_plain_path(target)) return fault(file, line, "not an absolute path without . and ..", target);
    for (size_t i = 0; i < sizeof kept_paths / sizeof *kept_paths; i++)
        if (is_at_or_below(target, kept_paths[i])) return fault(file, line, "/proc, /sys, /dev, /run and the tmp folders are bound always", target);
    struct root_bind *bind = &conf->binds[conf->count++];
    strcpy(bind->source, value);
    strcpy(bind->target, target);
    bind->is_file = is_file;
    bind->is_optional = is_optional;
    bind->line = line;
    return 0;
}

static int read_outside(const char *file, int line, const char *value, struct root_conf *conf) {
    char *end;
    unsigned long uid = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || uid > 0xfffffffeUL) return fault(file, line, "not the number of a user", value);
    if (conf->outside_count == ROOT_OUTSIDE_MAX) return fault(file, line, "more than 16 users outside", value);
    conf->outside[conf->outside_count++] = (unsigned)uid;
    return 0;
}

static int read_line(const char *file, int line, char *text, struct root_conf *conf, struct seen *seen) {
    text += strspn(text, " \t");
    for (size_t end = strlen(text); end && strchr(" \t\r\n", text[end - 1]);) text[--end] = 0;
    if (*text == 0 || *text == '#') return 0;
    char *equals = strchr(text, '=');
    if (equals == NULL) return fault(file, line, "not key=value", text);
    *equals = 0;
    char *value = equals + 1;
    if (strcmp(text, "shared") == 0) return read_folder(file, line, value, conf->shared, &seen->shared);
    if (strcmp(text, "tmp") == 0) return read_folder(file, line, value, conf->tmp, &seen->tmp);
    if (strcmp(text, "spool") == 0) return read_folder(file, line, value, conf->spool, &seen->spool);
    if (strcmp(text, "mount") == 0) return read_bind(file, line, value, false, false, conf);
    if (strcmp(text, "mount?") == 0) return read_bind(file, line, value, false, true, conf);
    if (strcmp(text, "file") == 0) return read_bind(file, line, value, true, false, conf);
    if (strcmp(text, "file?") == 0) return read_bind(file, line, value, true, true, conf);
    if (strcmp(text, "outside") == 0) return read_outside(file, line, value, conf);
    return fault(file, line, "unknown key; there are shared, mount, mount?, file, file?, tmp, spool, outside", text);
}

static int by_target(const void *left, const void *right) {
    return strcmp(((const struct root_bind *)left)->target, ((const struct root_bind *)right)->target);
}

static int check_together(const char *file, struct root_conf *conf) {
    int result = 0;
    char versions[ROOT_PATH_MAX + 16], jobs[ROOT_PATH_MAX + 16];
    snprintf(versions, sizeof versions, "%s/versions", conf->shared);
    snprintf(jobs, sizeof jobs, "%s/jobs", conf->shared);
    for (size_t i = 0; i < conf->count; i++) {
        const struct root_bind *bind = &conf->binds[i];
        if (is_at_or_below(conf->shared, bind->source) || is_at_or_below(bind->source, versions) || is_at_or_below(bind->source, jobs))
            result = fault(file, bind->line, "would show all versions inside each", bind->source);
        if (is_at_or_below(bind->target, conf->spool)) result = fault(file, bind->line, "slurmd's spool has a place of its own in the root", bind->target);
        if (i && strcmp(bind->target, bind[-1].target) == 0) result = fault(file, bind->line, "bound a second time", bind->target);
    }
    return result;
}

/* Pins of namespaces take a kernel that tells where mounts begin (5.8). Health checks are jobs of SlurmUser, and look at the node. */
static int without_versions(struct root_conf *conf) {
    struct statx folder;
    if (statx(AT_FDCWD, conf->tmp, 0, STATX_TYPE, &folder) < 0 || !(folder.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)) return 0;
    const struct passwd *found = getpwnam("slurm");
    if (found) conf->outside[conf->outside_count++] = found->pw_uid;
    return 1;
}

int root_conf_read(const char *path, struct root_conf *conf) {
    memset(conf, 0, sizeof *conf);
    strcpy(conf->shared, "/shared");
    strcpy(conf->tmp, "/var/spool/slipway/tmp");
    strcpy(conf->spool, "/var/spool/slurmd");
    owned_file file = fopen(path, "re");
    if (file == NULL) return errno == ENOENT ? without_versions(conf) : root_fail("%s: %m", path);
    conf->has_versions = true;
    int result = 1;
    struct seen seen = {0};
    owned_text text = NULL;
    size_t room = 0;
    ssize_t length;
    for (int line = 1; (length = getline(&text, &room, file)) >= 0; line++) {
        if (strlen(text) != (size_t)length) result = root_fail("%s:%d: has a zero byte", path, line);
        else if (read_line(path, line, text, conf, &seen) < 0) result = -1;
    }
    if (ferror(file)) result = root_fail("%s: %m", path);
    qsort(conf->binds, conf->count, sizeof *conf->binds, by_target);
    return check_together(path, conf) < 0 ? -1 : result;
}

bool root_conf_is_outside(const struct root_conf *conf, unsigned user) {
    for (size_t i = 0; i < conf->outside_count; i++)
        if (conf->outside[i] == user) return true;
    return false;
}
