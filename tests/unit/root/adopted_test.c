/* Sessions that Slurm adopted: which cgroup tells so, and which job it is. */
#include "adopted.c"

#include "enter.h"
#include "harness.h"

/* In place of enter.c: nothing here joins a namespace. */
int root_job_find(uint32_t job, root_version version) {
    (void)job, (void)version;
    return -1;
}
int root_job_join(int space, const char *script) {
    (void)space, (void)script;
    return -1;
}

static bool is_adopted(const char *text, size_t length) {
    owned_file file = as_file(text, length);
    return reads_as_adopted(file);
}

static void run_cgroup(char *text, size_t length) {
    bool has_name = memmem(text, length, "/step_extern", 12);
    CHECK(!is_adopted(text, length) || has_name);
}

static void run_job(char *text, size_t length) {
    uint32_t job = root_adopted_job(text);
    char again[16];
    (void)length;
    snprintf(again, sizeof again, "%u", job);
    CHECK(job == 0 || strcmp(text, again) == 0);
}

static const char *const cgroup_words[] = {"0::/s7F1M7YKC71F00/step_extern/user/task_special\n", "/step_extern", "/step_", "\n", NULL};
static const char *const job_words[] = {"1", "4294967295", "4294967296", "0", NULL};
const struct fuzz fuzzes[] = {{"adopted-cgroup", run_cgroup, cgroup_words}, {"adopted-job", run_job, job_words}, {0}};

void check(void) {
    root_version version;
    CHECK(is_adopted(cgroup_words[0], strlen(cgroup_words[0])) && is_adopted("1:cpu:/\n2:memory:/job_7/step_extern", 35));
    CHECK(!is_adopted("0::/job_7/step_batch\n", 21) && !is_adopted("", 0) && !is_adopted("0::/step_\nextern\n", 17));
    CHECK(root_adopted_job("1") == 1 && root_adopted_job("4294967295") == UINT32_MAX);
    CHECK(root_adopted_job(NULL) == 0 && root_adopted_job("") == 0 && root_adopted_job("0") == 0 && root_adopted_job("01") == 0);
    CHECK(root_adopted_job("4294967296") == 0 && root_adopted_job("-1") == 0 && root_adopted_job("7 ") == 0 && root_adopted_job("+7") == 0);
    CHECK(root_adopted_enter(0, version) == -1 && strcmp(root_reason(), "pam_slurm_adopt named no job") == 0);
    root_reason_clear();
    CHECK(root_adopted_enter(7, version) == -1 && strcmp(root_reason(), "the session is in no job's cgroup") == 0);
}
