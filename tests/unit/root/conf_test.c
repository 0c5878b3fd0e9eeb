/* root.conf: what is taken of it, and what is refused with its line. */
#include "conf.c"

#include <sys/mman.h>

#include "harness.h"

static struct root_conf conf;
static char path[64];

static int read_text(const char *text, size_t length) {
    owned_fd file = memfd_create("root.conf", MFD_CLOEXEC);
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    root_reason_clear();
    return root_conf_read(path, &conf);
}

static bool refuses(const char *text, const char *reason) { return read_text(text, strlen(text)) == -1 && strstr(root_reason(), reason); }

static void run_conf(char *text, size_t length) {
    int result = read_text(text, length);
    CHECK(result == 1 || result == -1);
    CHECK((*root_reason() == 0) == (result == 1));
    CHECK(conf.has_versions && conf.count <= ROOT_BINDS_MAX && conf.outside_count <= ROOT_OUTSIDE_MAX);
    CHECK(is_plain_path(conf.shared) && is_plain_path(conf.tmp) && is_plain_path(conf.spool));
    for (size_t i = 0; i < conf.count; i++) {
        CHECK(is_plain_path(conf.binds[i].source) && is_plain_path(conf.binds[i].target));
        CHECK(i == 0 || strcmp(conf.binds[i - 1].target, conf.binds[i].target) <= 0);
        for (size_t k = 0; k < sizeof kept_paths / sizeof *kept_paths; k++) CHECK(!is_at_or_below(conf.binds[i].target, kept_paths[k]));
        if (result == 1) CHECK(!is_at_or_below(conf.shared, conf.binds[i].source) && !is_at_or_below(conf.binds[i].target, conf.spool));
    }
}

static const char *const words[] = {
    "shared=/shared\nmount=/home\nmount?=/scratch:/data\nfile=/etc/passwd\nfile?=/etc/group:/etc/group.pod\noutside=64030\n",
    "shared=", "tmp=", "spool=", "mount=", "mount?=", "file=", "file?=", "outside=", "/a", "/../", "/./", "//", "/proc", "/tmp", "/shared/versions", "\n", "#", NULL,
};
const struct fuzz fuzzes[] = {{"conf", run_conf, words}, {0}};

void check(void) {
    CHECK(read_text(words[0], strlen(words[0])) == 1 && conf.count == 4 && conf.outside_count == 1);
    CHECK(strcmp(conf.binds[0].target, "/data") == 0 && strcmp(conf.binds[0].source, "/scratch") == 0 && conf.binds[0].is_optional);
    CHECK(strcmp(conf.binds[2].target, "/etc/passwd") == 0 && conf.binds[2].is_file && conf.binds[2].line == 4);
    CHECK(root_conf_is_outside(&conf, 64030) && !root_conf_is_outside(&conf, 0));
    CHECK(read_text("", 0) == 1 && strcmp(conf.shared, "/shared") == 0);
    CHECK(read_text(" # words\n\t\nmount=/a  \r\n", 22) == 1 && strcmp(conf.binds[0].source, "/a") == 0);
    CHECK(refuses("mount", ":1: not key=value: mount"));
    CHECK(refuses("\nmounts=/a", ":2: unknown key"));
    CHECK(refuses("mount=a", "not an absolute path"));
    CHECK(refuses("mount=/a/../b", "not an absolute path"));
    CHECK(refuses("mount=/a:/b/", "not an absolute path without . and ..: /b/"));
    CHECK(refuses("mount=/a:/tmp/b", "are bound always: /tmp/b"));
    CHECK(refuses("mount=/a\nfile=/b:/a", "bound a second time: /a"));
    CHECK(refuses("shared=/s\nmount=/s:/x", "would show all versions inside each: /s"));
    CHECK(refuses("mount=/:/x", "not an absolute path"));
    CHECK(refuses("spool=/v\nmount=/a:/v/b", "slurmd's spool"));
    CHECK(refuses("tmp=/a\ntmp=/a", ":2: given a second time"));
    CHECK(refuses("outside=4294967295", "not the number of a user"));
    CHECK(refuses("outside=-1", "not the number of a user"));
    CHECK(refuses("mount=a\nmount=b", ":1: not an absolute path without . and ..: a\n"));
    CHECK(read_text("mount=/a\0\n", 10) == -1 && strstr(root_reason(), "has a zero byte"));
    root_reason_clear();
    CHECK(root_conf_read("/proc/self/no-such-file", &conf) >= 0 && !conf.has_versions);
}
