/* What jobs have of a node's disk: the words that the worker's program writes. */
#include "disk.c"

#include "harness.h"

static void run_disks(char *text, size_t length) {
    struct root_disks disks;
    (void)length;
    if (root_disks_parse(text, &disks)) CHECK(disks.tmp_mib <= MOST_MIB && disks.scratch_mib <= MOST_MIB && (disks.tmp_mib || !disks.tmp_in_memory));
}

static const char *const words[] = {"tmp=20480 scratch=102400\n", "tmp-in-memory=512", "tmp=", "scratch=", "=", " ", "0", "1073741825", "-1", "\n", NULL};
const struct fuzz fuzzes[] = {{"disks", run_disks, words}, {0}};

static bool reads(const char *given, unsigned long tmp, unsigned long scratch, bool in_memory) {
    char text[64];
    struct root_disks disks;
    snprintf(text, sizeof text, "%s", given);
    return root_disks_parse(text, &disks) && disks.tmp_mib == tmp && disks.scratch_mib == scratch && disks.tmp_in_memory == in_memory;
}

static bool refuses(const char *given) {
    char text[64];
    struct root_disks disks;
    snprintf(text, sizeof text, "%s", given);
    return !root_disks_parse(text, &disks);
}

void check(void) {
    CHECK(reads("tmp=20480 scratch=102400\n", 20480, 102400, false));
    CHECK(reads("scratch=8", 0, 8, false) && reads("tmp-in-memory=512", 512, 0, true) && reads("", 0, 0, false));
    CHECK(refuses("tmp=0") && refuses("tmp=-1") && refuses("tmp=1g") && refuses("tmp=") && refuses("tmp") && refuses("home=1") && refuses("scratch=1073741825"));
}
