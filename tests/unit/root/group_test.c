/* Files of /proc and of control groups, and the paths that come of them. */
#include "group.c"

#include "harness.h"

static const char v1[] = "12:pids:/kubepods/pod1\n4:cpu,cpuacct:/\n3:memory:/kubepods/pod1/slurm/uid_0/job_7/step_0/task_0\n0::/\n";
static const char v2[] = "0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n";
static const char mounts[] = "36 25 0:31 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
                             "25 20 0:22 /kubepods/pod1 /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char status[] = "Name:\tslurmstepd\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nGid:\t0\n";

static bool is_path(const char *path) { return strlen(path) < sizeof(group_path) && strchr(path, '\n') == NULL; }

static void run_group(char *text, size_t length) {
    group_path group;
    owned_file file = as_file(text, length);
    int kind = read_group(file, "memory", group);
    CHECK(kind >= 0 && kind <= 2);
    if (kind == 0) return;
    CHECK(is_path(group));
    if (cut_to_step(group)) CHECK(strstr(group, "/step_") && cut_to_job(group) && !strstr(group, "/step_"));
}

static void run_mounts(char *text, size_t length) {
    group_path top, shown, folder;
    for (int kind = 1; kind <= 2; kind++) {
        owned_file file = as_file(text, length);
        if (!read_mounts(file, kind, "memory", top, shown)) continue;
        CHECK(*top && *shown && is_path(top) && is_path(shown));
        if (join_paths("/kubepods/pod1/job_7", top, shown, folder)) CHECK(is_path(folder) && strncmp(folder, top, strlen(top)) == 0);
    }
}

static void run_status(char *text, size_t length) {
    owned_file file = as_file(text, length);
    if (reads_as_stepd(file)) CHECK(strstr(text, "slurmstepd") || strlen(text) < length);
}

static void run_processes(char *text, size_t length) {
    owned_file file = as_file(text, length);
    process_name process;
    size_t count = 0;
    while (next_process(file, process)) CHECK(strlen(process) < sizeof process && strchr(process, '\n') == NULL && count++ <= length);
}

static void run_list(char *text, size_t length) {
    group_path line;
    const char *at = text;
    (void)length;
    for (const char *before = text; (at = next_line(at, line)); before = at) CHECK(at > before && at <= text + strlen(text) && is_path(line));
}

static const char *const group_words[] = {v1, v2, "memory", "cpu,", "::", ":", "/step_", "/job_7", "\n", NULL};
static const char *const mount_words[] = {mounts, " - cgroup cgroup rw,memory\n", " - cgroup2 x rw\n", " - ", "memory", "1 2 3 / /sys/fs/cgroup", "\\040", "\n", NULL};
static const char *const status_words[] = {status, "Name:\tslurmstepd", "Uid: ", "Uid:\t0", "\n", NULL};
static const char *const process_words[] = {"1\n22\n333\n", "0\n", NULL};
static const char *const list_words[] = {"/sys/fs/cgroup/memory/job_7/step_0\n/sys/fs/cgroup/cpuset/job_7/step_0\n", "\n", "/", NULL};
const struct fuzz fuzzes[] = {
    {"proc-cgroup", run_group, group_words}, {"mountinfo", run_mounts, mount_words}, {"proc-status", run_status, status_words},
    {"cgroup-procs", run_processes, process_words}, {"group-list", run_list, list_words}, {0},
};

static int group_of(const char *text, const char *controller, group_path group) {
    owned_file file = as_file(text, strlen(text));
    return read_group(file, controller, group);
}

static bool mount_of(const char *text, int kind, const char *controller, group_path top, group_path shown) {
    owned_file file = as_file(text, strlen(text));
    return read_mounts(file, kind, controller, top, shown);
}

static bool is_stepd_of(const char *text) {
    owned_file file = as_file(text, strlen(text));
    return reads_as_stepd(file);
}

void check(void) {
    group_path group, top, shown, line;
    CHECK(has_word("cpu,cpuacct", "cpuacct") && has_word("cpu,cpuacct\n", "cpuacct") && !has_word("cpu,cpuacct", "acct") && !has_word("cpuacct", "cpu"));
    CHECK(group_of(v1, "memory", group) == 1 && strcmp(group, "/kubepods/pod1/slurm/uid_0/job_7/step_0/task_0") == 0);
    CHECK(cut_to_step(group) && strcmp(group, "/kubepods/pod1/slurm/uid_0/job_7/step_0") == 0);
    CHECK(cut_to_job(group) && strcmp(group, "/kubepods/pod1/slurm/uid_0/job_7") == 0 && !cut_to_job(group) && !cut_to_step(group));
    CHECK(group_of(v1, "cpuacct", group) == 1 && strcmp(group, "/") == 0);
    CHECK(group_of(v1, "freezer", group) == 2 && group_of(v2, "memory", group) == 2 && strcmp(group, strchr(v2, '/')) < 0);
    CHECK(group_of("", "memory", group) == 0 && group_of("no colon\n1:memory\n", "memory", group) == 0);

    CHECK(mount_of(mounts, 1, "memory", top, shown) && strcmp(top, "/sys/fs/cgroup/memory") == 0 && strcmp(shown, "/") == 0);
    CHECK(mount_of(mounts, 2, "memory", top, shown) && strcmp(top, "/sys/fs/cgroup") == 0 && strcmp(shown, "/kubepods/pod1") == 0);
    CHECK(!mount_of(mounts, 1, "pids", top, shown) && !mount_of("", 2, "", top, shown));
    CHECK(join_paths("/a/b", "/m", "/", group) && strcmp(group, "/m/a/b") == 0);
    CHECK(join_paths("/a/b", "/m", "/a", group) && strcmp(group, "/m/b") == 0 && join_paths("/a", "/m", "/a", group) && strcmp(group, "/m") == 0);
    CHECK(!join_paths("/ab", "/m", "/a", group) && !join_paths("/b", "/m", "/a", group));

    CHECK(is_stepd_of(status) && !is_stepd_of("Name:\tslurmstepd\nUid:\t1000\t0\t0\t0\n") && !is_stepd_of("Name:\tsh\nUid:\t0\t0\n"));
    CHECK(!is_stepd_of("Uid:\t0\nName:\tslurmstepd\n") && !is_stepd_of("Name:\tslurmstepd\n") && !is_stepd_of(""));

    const char *rest = next_line("/a\n\n/b", line);
    CHECK(rest && strcmp(line, "/a") == 0 && (rest = next_line(rest, line)) && *line == 0);
    CHECK((rest = next_line(rest, line)) && strcmp(line, "/b") == 0 && next_line(rest, line) == NULL);
}
