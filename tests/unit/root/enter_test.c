/* The path of a batch script, names of jobs' folders, and what the process says that builds a job's root. */
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#ifndef NS_GET_MNTNS_ID /* headers before Linux 6.12; the image has newer ones */
#define NS_GET_MNTNS_ID _IOR(NSIO, 0x5, unsigned long long)
#endif
#include "enter.c"

#include "harness.h"

static void run_script(char *text, size_t length) {
    char folder[ROOT_PATH_MAX];
    (void)length;
    root_reason_clear();
    if (cut_to_folder(text, folder) < 0) {
        CHECK(*root_reason());
        return;
    }
    size_t kept = strlen(folder);
    CHECK(folder[0] == '/' && kept >= 1 && strncmp(folder, text, kept) == 0 && text[kept] == '/' && strchr(text + kept + 1, '/') == NULL);
}

static void run_job_name(char *text, size_t length) {
    (void)length;
    if (is_job_name(text)) CHECK(strlen(text) < sizeof(job_name) && strpbrk(text, "/.") == NULL);
}

/* What a pipe holds at once. */
static int heard(const char *text, size_t length) {
    owned_fd from = -1, to = -1;
    CHECK(make_pipe(&from, &to) == 0 && write(to, text, length) == (ssize_t)length);
    root_close_now(&to);
    root_reason_clear();
    return hear(from);
}

/* A byte that tells success, and a reason where there is none; the other side may end at any moment. */
static void run_answer(char *text, size_t length) {
    bool is_done = length && text[0] == 1;
    if (!is_done) text[0] = 0;
    size_t sent = length ? 1 + strlen(text + 1) : 0;
    CHECK(heard(text, sent) == (is_done ? 0 : -1) && (*root_reason() == 0) == is_done);
}

static const char *const script_words[] = {"/var/spool/slurmd/job00007/slurm_script", "/a", "/", "\n", NULL};
static const char *const job_words[] = {"1", "4294967295", "7.lock", NULL};
static const char *const answer_words[] = {"\1", "no mounts here\nand none there", "\n", NULL};
const struct fuzz fuzzes[] = {{"script", run_script, script_words}, {"job-folder", run_job_name, job_words}, {"answer", run_answer, answer_words}, {0}};

/* Nothing stays open of a script that cannot be shown: main looks at that after each check. */
static void check_joins(void) {
    char script[128];
    root_reason_clear();
    snprintf(script, sizeof script, "/proc/self/fd/%d/job7/slurm_script", scratch());
    CHECK(mkdirat(scratch(), "job7", 0755) == 0 && root_job_join(-1, script) == -1);
    CHECK(strstr(root_reason(), "joining the job's namespace") || strstr(root_reason(), "the job's script")); /* without CAP_SYS_ADMIN */
    root_reason_clear();
    CHECK(root_job_join(-1, "/script") == -1 && root_job_join(-1, "/no-such/folder/script") == -1 && root_job_join(-1, NULL) == -1);
}

void check(void) {
    check_joins();
    char folder[ROOT_PATH_MAX], longest[ROOT_PATH_MAX + 1];
    CHECK(cut_to_folder("/var/spool/job7/slurm_script", folder) == 0 && strcmp(folder, "/var/spool/job7") == 0);
    CHECK(cut_to_folder("/script", folder) < 0 && cut_to_folder("a/b", folder) < 0 && cut_to_folder("", folder) < 0 && cut_to_folder("/a/b\nc", folder) < 0);
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "/a/", 3);
    longest[ROOT_PATH_MAX] = 0;
    CHECK(cut_to_folder(longest, folder) < 0);
    longest[ROOT_PATH_MAX - 1] = 0;
    CHECK(cut_to_folder(longest, folder) == 0 && strcmp(folder, "/a") == 0);
    CHECK(is_job_name("7") && is_job_name("4294967295") && !is_job_name("7.lock") && !is_job_name("-7") && !is_job_name("1234567890123456"));
    CHECK(heard("\1", 1) == 0 && heard("\0why\nand how", 12) == -1 && strncmp(root_reason(), "why\nand how", 11) == 0);
    CHECK(heard("", 0) == -1 && strstr(root_reason(), "ended without a word"));
}
