#include "group.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "owned.h"
#include "reason.h"

typedef char group_path[4096];

/* `jobs` of the pod's own pids group, on v1. */
#define OWN "/slipway-jobs"
enum { END_TRIES = 500, END_PAUSE_MS = 10 };

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0 || at[length] == '\n')) return true;
    return false;
}

/* The group of a process in the hierarchy of a controller, from its /proc/<pid>/cgroup. 1: of v1, 2: of v2, 0: there is none. */
static int read_group(FILE *file, const char *controller, group_path group) {
    owned_text line = NULL;
    size_t room = 0;
    int found = 0;
    while (found != 1 && getline(&line, &room, file) > 0) {
        char *words = strchr(line, ':'), *path = words ? strchr(words + 1, ':') : NULL;
        if (path == NULL) continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        int kind = words[1] == 0 ? 2 : has_word(words + 1, controller) ? 1 : 0;
        if (kind == 0 || strlen(path) >= sizeof(group_path)) continue;
        strcpy(group, path);
        found = kind;
    }
    return found;
}

static int find_group(const char *process, const char *controller, group_path group) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%s/cgroup", process);
    owned_file file = fopen(name, "re");
    return file ? read_group(file, controller, group) : 0;
}

/* Where that hierarchy is mounted, from /proc/self/mountinfo: `top` is the mount point, `shown` the group that it shows. */
static bool read_mounts(FILE *file, int kind, const char *controller, group_path top, group_path shown) {
    owned_text line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (!is_found && getline(&line, &room, file) > 0) {
        char *rest = strstr(line, " - ");
        group_path at, root;
        char type[32], options[512];
        if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", root, at) != 2 || sscanf(rest, " - %31s %*s %511s", type, options) != 2) continue;
        is_found = kind == 2 ? strcmp(type, "cgroup2") == 0 : strcmp(type, "cgroup") == 0 && has_word(options, controller);
        if (is_found) strcpy(top, at), strcpy(shown, root);
    }
    return is_found;
}

static bool find_mount(int kind, const char *controller, group_path top, group_path shown) {
    owned_file file = fopen("/proc/self/mountinfo", "re");
    return file && read_mounts(file, kind, controller, top, shown);
}

/* The folder of a group below the mount point; false where the mount does not show it. */
static bool join_paths(const char *group, const char *top, const char *shown, group_path folder) {
    size_t length = strcmp(shown, "/") == 0 ? 0 : strlen(shown);
    if (strncmp(group, shown, length) != 0 || (group[length] != '/' && group[length] != 0)) return false;
    return (size_t)snprintf(folder, sizeof(group_path), "%s%s", top, group + length) < sizeof(group_path);
}

/* The folder of a process's group. 1: of v1, 2: of v2, 0: the pod shows none. */
static int find_folder(const char *process, const char *controller, group_path folder) {
    group_path group, top, shown;
    int kind = find_group(process, controller, group);
    return kind && find_mount(kind, controller, top, shown) && join_paths(group, top, shown, folder) ? kind : 0;
}

static int put(const char *folder, const char *name, const char *value) {
    char path[sizeof(group_path) + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    owned_fd file = open(path, O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, value, strlen(value)) >= 0 ? 0 : root_fail("writing %s to %s: %m", value, path);
}

/* Of the job's group, from that of a step; false outside of a job. */
static bool cut_to_job(group_path folder) {
    char *step = strstr(folder, "/step_");
    if (step) *step = 0;
    return step != NULL;
}

/* slurmstepd, by name and by user: a user's process can have the name, and none of a job can be root. From /proc/<pid>/status. */
static bool reads_as_stepd(FILE *file) {
    unsigned user = 1;
    bool is_named = false;
    owned_text line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        if (strncmp(line, "Name:\tslurmstepd", 16) == 0) is_named = true;
        if (sscanf(line, "Uid: %u", &user) == 1) break;
    }
    return is_named && user == 0;
}

static bool is_stepd(const char *process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/status", process);
    owned_file file = fopen(path, "re");
    return file && reads_as_stepd(file);
}

typedef char process_name[32];

/* The next process of a cgroup.procs. */
static bool next_process(FILE *file, process_name process) {
    if (!fgets(process, sizeof(process_name), file)) return false;
    process[strcspn(process, "\n")] = 0;
    return true;
}

static int spare_step(const char *step, const char *pod) {
    char path[2 * sizeof(group_path) + 16];
    snprintf(path, sizeof path, "%s/cgroup.procs", step);
    owned_file file = fopen(path, "re");
    process_name process;
    int result = 0;
    while (file && next_process(file, process)) {
        if (is_stepd(process) && put(pod, "cgroup.procs", process) < 0) result = -1;
    }
    return result;
}

int root_group_spare(void) {
    group_path job, pod;
    char step[2 * sizeof(group_path)];
    if (find_folder("self", "memory", job) == 0 || find_folder("1", "memory", pod) == 0) return root_fail("the pod shows no memory cgroups");
    if (!cut_to_job(job)) return 0;
    owned_folder folder = opendir(job);
    int result = folder ? 0 : root_fail("%s: %m", job);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, "step_", 5) != 0) continue;
        for (size_t i = 0; i < 2; i++) { /* of v1 and of v2 */
            snprintf(step, sizeof step, "%s/%s%s", job, entry->d_name, i ? "/slurm" : "");
            if (spare_step(step, pod) < 0) result = -1;
        }
    }
    return result;
}

/* Of the step's group, from one below it; false outside of a step. */
static bool cut_to_step(group_path folder) {
    char *step = strstr(folder, "/step_");
    if (step) step[1 + strcspn(step + 1, "/")] = 0;
    return step != NULL;
}

/* The group of a task's step: a task's own may come later and go earlier. 0: the task is in none. */
static int find_step(const char *task, const char *controller, group_path folder) {
    int kind = find_folder(task, controller, folder);
    return kind && cut_to_step(folder) ? kind : 0;
}

/* On v1 a process that has ended, a zombie, is in the topmost group of each hierarchy, all at once. So the list is whole where the task is still in
   its step's group at the end; else it is dropped, and one of another task stays as it was. */
int root_group_list(pid_t task, char list[ROOT_GROUPS_MAX]) {
    static const char *const controllers[] = {"memory", "cpuset", "devices", "freezer", "cpuacct"};
    char process[16], found[ROOT_GROUPS_MAX];
    const char *held = NULL;
    group_path folder;
    size_t used = 0;
    snprintf(process, sizeof process, "%d", (int)task);
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
        int kind = find_step(process, controllers[i], folder);
        if (kind == 0) continue;
        held = controllers[i];
        used += (size_t)snprintf(found + used, sizeof found - used, "%s\n", folder);
        if (used >= sizeof found) return root_fail("the paths of the step's cgroups are too long");
        if (kind == 2) break; /* one for all controllers */
    }
    if (held == NULL || find_step(process, held, folder) == 0) return root_fail("task process %s is in no cgroup of a step: it has ended, or the pod shows none", process);
    memcpy(list, found, used + 1);
    return 0;
}

void root_group_of_job(pid_t task, const char *controller, char folder[ROOT_GROUPS_MAX]) {
    char process[16];
    group_path group, top, shown, found;
    snprintf(process, sizeof process, "%d", (int)task);
    int kind = find_group(process, "memory", group);
    bool is_known = kind && find_mount(kind, controller, top, shown) && join_paths(group, top, shown, found) && cut_to_job(found);
    snprintf(folder, ROOT_GROUPS_MAX, "%s", is_known ? found : "");
}

/* On v2 only a group without others below it takes processes: here that of one of the step's tasks, which Slurm keeps till the step's end. */
static int enter_step(const char *step) {
    char path[2 * sizeof(group_path) + 16];
    snprintf(path, sizeof path, "%s/user", step);
    owned_folder tasks = opendir(path);
    if (tasks == NULL) return put(step, "cgroup.procs", "0");
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        if (strncmp(entry->d_name, "task_", 5) != 0) continue;
        snprintf(path, sizeof path, "%s/user/%s", step, entry->d_name);
        if (put(path, "cgroup.procs", "0") == 0) return 0;
    }
    return root_fail("%s has no task's group to join", step);
}

/* The next line of a list, and what comes after it; NULL at its end. */
static const char *next_line(const char *list, group_path line) {
    if (*list == 0) return NULL;
    size_t length = strcspn(list, "\n");
    snprintf(line, sizeof(group_path), "%.*s", (int)length, list);
    return list + length + (list[length] != 0);
}

int root_group_enter(const char *list) {
    group_path step;
    while ((list = next_line(list, step)))
        if (enter_step(step) < 0) return -1;
    return 0;
}

int root_group_offer(void) { return put("/proc/self", "oom_score_adj", "1000"); }

static bool own_folder(uint32_t job, group_path folder) {
    group_path pod;
    if (find_folder("1", "pids", pod) != 1) return false;
    return (size_t)snprintf(folder, sizeof(group_path), "%s" OWN "/%u", pod, job) < sizeof(group_path);
}

static int make_folder(const char *path) { return mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : root_fail("%s: %m", path); }

/* v1: a group beside those of Slurm, which does not know this hierarchy. */
static int make_own(uint32_t job, group_path folder) {
    group_path above;
    if (!own_folder(job, folder)) return root_fail("the pod shows no pids cgroups");
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    return make_folder(above) < 0 ? -1 : make_folder(folder);
}

/* v2: the job's own group. Slurm switches the controller on for none. */
static int switch_on(group_path job) {
    char path[sizeof(group_path) + 16];
    snprintf(path, sizeof path, "%s/pids.max", job);
    if (access(path, F_OK) == 0) return 0;
    group_path above;
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(job, '/') - job), job);
    return put(above, "cgroup.subtree_control", "+pids");
}

int root_group_limit(uint32_t job, unsigned long most) {
    group_path folder;
    char value[32];
    int kind = find_folder("self", "pids", folder);
    if (kind == 0) return root_fail("the pod shows no pids cgroups");
    if (kind == 2 && !cut_to_job(folder)) return 0;
    if ((kind == 1 ? make_own(job, folder) : switch_on(folder)) < 0) return -1;
    snprintf(value, sizeof value, "%lu", most);
    return put(folder, "pids.max", value);
}

int root_group_join(uint32_t job) {
    group_path folder;
    if (!own_folder(job, folder) || access(folder, F_OK) < 0) return 0;
    return put(folder, "cgroup.procs", "0");
}

static void kill_all(const char *folder) {
    char path[sizeof(group_path) + 16];
    int process;
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    owned_file file = fopen(path, "re");
    while (file && fscanf(file, "%d", &process) == 1)
        if (process > 0) kill(process, SIGKILL); /* 0: of another pid namespace */
}

void root_group_remove(uint32_t job) {
    group_path folder;
    const struct timespec pause = {.tv_nsec = END_PAUSE_MS * 1000000L};
    if (!own_folder(job, folder) || rmdir(folder) == 0 || errno != EBUSY) return;
    put(folder, "pids.max", "0"); /* they fork no more */
    for (int tries = 0; tries < END_TRIES && rmdir(folder) < 0 && errno == EBUSY; tries++) {
        kill_all(folder);
        nanosleep(&pause, NULL);
    }
}
