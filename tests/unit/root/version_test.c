/* Names of versions, the links of the shared volume that hold some, and who may write to its folders. */
#include "version.c"

#include "harness.h"

static void run_name(char *text, size_t length) {
    bool is_name = root_version_is_name(text);
    length = strlen(text);
    CHECK(!is_name || (length >= 1 && length <= ROOT_VERSION_MAX && !strchr("._-", *text) && strpbrk(text, "/ \n:=") == NULL));
}

/* A link of the shared volume; false for what no link can say. */
static bool point(const char *name, const char *text) {
    unlinkat(scratch(), name, 0);
    return symlinkat(text, scratch(), name) == 0;
}

static void run_current(char *text, size_t length) {
    root_version version = "";
    (void)length;
    if (!point("current", text)) return;
    root_reason_clear();
    int result = root_version_current(scratch(), version);
    CHECK(result == 0 || (result == -1 && *root_reason()));
    CHECK(result < 0 || (root_version_is_name(version) && strcmp(text + 9, version) == 0));
}

static void run_decided(char *text, size_t length) {
    root_version version = "";
    (void)length;
    mkdirat(scratch(), "jobs", 0755);
    if (!point("jobs/7", text)) return;
    root_reason_clear();
    int result = root_version_of_job(scratch(), 7, NULL, version);
    CHECK(result == 0 ? strcmp(text, version) == 0 && root_version_is_name(version) : result == -1 && *root_reason());
}

/* What a job asks for, of the versions that there are: none. */
static void run_wanted(char *text, size_t length) {
    root_version version;
    (void)length;
    unlinkat(scratch(), "jobs/8", 0);
    root_reason_clear();
    CHECK(root_version_of_job(scratch(), 8, text, version) == -1 && *root_reason());
}

static const char *const words[] = {"versions/", "1.0", "current", "a-b_c", "..", "/", NULL};
const struct fuzz fuzzes[] = {
    {"version-name", run_name, words}, {"version-current", run_current, words}, {"version-of-job", run_decided, words}, {"version-wanted", run_wanted, words}, {0},
};

static bool says(const char *reason) {
    bool has_said = strstr(root_reason(), reason);
    root_reason_clear();
    return has_said;
}

void check(void) {
    static const char longest[] = "0123456789012345678901234567890123456789012345678901234567890123";
    root_version version;
    int shared = scratch();
    CHECK(root_version_is_name("1") && root_version_is_name("2024.1-a_B") && root_version_is_name(longest));
    CHECK(sizeof longest - 1 == ROOT_VERSION_MAX);
    CHECK(!root_version_is_name("") && !root_version_is_name(".a") && !root_version_is_name("a/b") && !root_version_is_name("a\n") && !root_version_is_name("-a"));

    CHECK(root_version_current(shared, version) == -1 && says("make it: ln -s versions/VERSION current"));
    CHECK(point("current", "versions/1") && root_version_current(shared, version) == 0 && strcmp(version, "1") == 0);
    CHECK(point("current", "versions/../1") && root_version_current(shared, version) == -1 && says("says versions/../1"));

    CHECK(mkdirat(shared, "versions", 0700) == 0 && fchmodat(shared, "versions", 0700, 0) == 0);
    CHECK(root_version_open(shared, "1") == -1 && says("no version 1; there are: none"));
    CHECK(mkdirat(shared, "versions/1", 0755) == 0 && fchmodat(shared, "versions/1", 0755, 0) == 0);
    CHECK(root_version_open(shared, "2") == -1 && says("there are: 1"));
    owned_fd folder = root_version_open(shared, "1");
    CHECK(folder >= 0 && fcntl(folder, F_GETFD) == FD_CLOEXEC);
    CHECK(symlinkat("1", shared, "versions/3") == 0 && root_version_open(shared, "3") == -1 && says("version 3 of the root: "));
    CHECK(fchmodat(shared, "versions/1", 0757, 0) == 0 && root_version_open(shared, "1") == -1 && says("chmod 755 its folder"));
    CHECK(fchmodat(shared, "versions", 0701, 0) == 0 && root_version_open(shared, "1") == -1 && says("chmod 700 it"));
    CHECK(fchmodat(shared, "versions", 0702, 0) == 0 && root_version_open(shared, "1") == -1 && says("chmod o-w it"));
    CHECK(fchmodat(shared, "versions", 0700, 0) == 0 && fchmodat(shared, "versions/1", 0755, 0) == 0);

    CHECK(point("current", "versions/1") && root_version_of_job(shared, 5, NULL, version) == 0 && strcmp(version, "1") == 0);
    CHECK(point("current", "versions/2") && root_version_of_job(shared, 5, NULL, version) == 0 && strcmp(version, "1") == 0);
    CHECK(root_version_of_job(shared, 5, "2", version) == -1 && says("job 5 runs in version 1 of the root, not in 2"));
    CHECK(root_version_of_job(shared, 6, "2", version) == -1 && says("no version 2") && faccessat(shared, "jobs/6", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
    CHECK(root_version_of_job(shared, 6, "../1", version) == -1 && says("not a name of a version: ../1"));
    CHECK(root_version_forget(shared, 5) == 0 && root_version_forget(shared, 5) == 0);
    CHECK(root_version_of_job(shared, 5, NULL, version) == -1 && says("no version 2"));
}
