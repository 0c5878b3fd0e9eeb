#include "version.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "owned.h"
#include "reason.h"

#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool root_version_is_name(const char *text) {
    size_t length = strlen(text);
    return length >= 1 && length <= ROOT_VERSION_MAX && strchr(ALNUM, text[0]) && strspn(text, ALNUM "._-") == length;
}

/* A folder that everybody may write to could be given another content by any user with a foot in the pod (sbcast writes there, for one). */
static int open_closed(int parent, const char *name, const char *what) {
    owned_fd folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return root_fail("%s %s: %m", what, name);
    struct stat found;
    if (fstat(folder, &found) == 0 && !(found.st_mode & S_IWOTH)) return root_hand_over(&folder);
    return root_fail("%s %s is writable for everybody: chmod o-w it", what, name);
}

int root_shared_open(const char *path) { return open_closed(AT_FDCWD, path, "the shared volume"); }

/* For the refusal of an unknown version: what there is instead. Takes over the folder. */
static void list(int versions, char *into, size_t room) {
    owned_folder folder = root_read_folder(versions);
    const struct dirent *entry;
    size_t used = 0;
    snprintf(into, room, "none");
    while (folder && (entry = readdir(folder)))
        if (root_version_is_name(entry->d_name) && used + strlen(entry->d_name) + 6 < room)
            used += (size_t)snprintf(into + used, room - used, "%s%s", used ? ", " : "", entry->d_name);
}

int root_version_open(int shared, const char *version) {
    owned_fd versions = open_closed(shared, "versions", "folder of the shared volume");
    if (versions < 0) return -1;
    struct stat found;
    if (fstat(versions, &found) < 0 || (found.st_mode & 0007)) /* srun's --task-epilog runs in the pod, as its user */
        return root_fail("the shared volume's folder versions is open to all users: chmod 700 it");
    owned_fd folder = openat(versions, version, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        if (fstat(folder, &found) == 0 && (found.st_mode & 0007) == 0005) return root_hand_over(&folder);
        return root_fail("version %s of the root must be readable for everybody and writable for few: chmod 755 its folder", version);
    }
    if (errno != ENOENT) return root_fail("version %s of the root: %m", version);
    char there[512];
    list(root_hand_over(&versions), there, sizeof there);
    return root_fail("the root has no version %s; there are: %s", version, there);
}

int root_version_current(int shared, root_version version) {
    char text[128];
    ssize_t length = readlinkat(shared, "current", text, sizeof text - 1);
    if (length < 0) return root_fail("the shared volume's link `current`: %m; make it: ln -s versions/VERSION current");
    text[length] = 0;
    if (strncmp(text, "versions/", 9) != 0 || !root_version_is_name(text + 9))
        return root_fail("the shared volume's link `current` says %s, not versions/VERSION", text);
    strcpy(version, text + 9);
    return 0;
}

static int check_wanted(uint32_t job, const char *wanted, const char *version) {
    if (wanted == NULL || strcmp(wanted, version) == 0) return 0;
    return root_fail("job %u runs in version %s of the root, not in %s: a version is chosen when a job is submitted", job, version, wanted);
}

/* 1: decided before; 0: not decided. */
static int read_decided(int jobs, const char *name, root_version version) {
    char text[128];
    ssize_t length = readlinkat(jobs, name, text, sizeof text - 1);
    if (length < 0) return errno == ENOENT ? 0 : root_fail("the shared volume's jobs/%s: %m", name);
    text[length] = 0;
    if (!root_version_is_name(text)) return root_fail("the shared volume's jobs/%s names no version: %s", name, text);
    strcpy(version, text);
    return 1;
}

static int decide(int shared, int jobs, const char *name, const char *wanted, root_version version) {
    int decided = read_decided(jobs, name, version);
    if (decided) return decided;
    if (wanted == NULL && root_version_current(shared, version) < 0) return -1;
    if (wanted) strcpy(version, wanted);
    owned_fd folder = root_version_open(shared, version); /* an unknown one leaves nothing behind */
    if (folder < 0) return -1;
    if (symlinkat(version, jobs, name) == 0) return 1;
    /* A volume that is full or read-only takes no note, nor a switch that the job's other nodes could fall behind of. So they find the same. And
       programs/root_clean removes nothing while slurmctld knows of a running job without a note. */
    if (errno == ENOSPC || errno == EDQUOT || errno == EROFS) return 1;
    if (errno != EEXIST) return root_fail("the shared volume's jobs/%s: %m", name);
    return read_decided(jobs, name, version) == 1 ? 1 : root_fail("the shared volume's jobs/%s came and went", name);
}

int root_version_of_job(int shared, uint32_t job, const char *wanted, root_version version) {
    if (wanted && !root_version_is_name(wanted)) return root_fail("not a name of a version: %.100s", wanted);
    if (mkdirat(shared, "jobs", 0755) < 0 && errno != EEXIST) return root_fail("the shared volume's folder jobs: %m");
    owned_fd jobs = open_closed(shared, "jobs", "folder of the shared volume");
    if (jobs < 0) return -1;
    char name[16];
    snprintf(name, sizeof name, "%u", job);
    int decided = decide(shared, jobs, name, wanted, version);
    return decided < 0 ? -1 : check_wanted(job, wanted, version);
}

int root_version_forget(int shared, uint32_t job) {
    owned_fd jobs = openat(shared, "jobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (jobs < 0) return errno == ENOENT ? 0 : root_fail("the shared volume's folder jobs: %m");
    char name[16];
    snprintf(name, sizeof name, "%u", job);
    return unlinkat(jobs, name, 0) == 0 || errno == ENOENT ? 0 : root_fail("the shared volume's jobs/%s: %m", name);
}
