/* The list of a node's instances of MIG. */
#include "mig.c"

#include "harness.h"

static bool is_even(const char *file) { return strlen(file) % 2 == 0; }
static bool is_any(const char *file) { return *file == '/'; }

static void run_list(char *text, size_t length) {
    char names[64];
    (void)length;
    root_mig_select(text, is_even, names, sizeof names);
    CHECK(strlen(names) < sizeof names);
}

static const char *const words[] = {"/dev/slipway-mig/0-0-ci", " ", "\n", "MIG-", ",", "/d MIG-1\n/de MIG-2\n/dev MIG-3\n", NULL};
const struct fuzz fuzzes[] = {{"mig-list", run_list, words}, {0}};

static bool is_selected(const char *list, bool (*is_open)(const char *file), size_t size, const char *wanted) {
    char text[256], names[256];
    strcpy(text, list);
    root_mig_select(text, is_open, names, size);
    return strcmp(names, wanted) == 0;
}

static bool is_first_and_third(const char *file) { return strcmp(file, "/dev/nvidia0") == 0 || strcmp(file, "/dev/nvidia2") == 0; }
static bool is_none(const char *file) { return *file == 0; }

static bool counts(bool (*is_open)(const char *file), size_t size, const char *wanted) {
    char names[8 * ROOT_GPUS_MAX];
    root_gpus_count(is_open, names, size);
    return strcmp(names, wanted) == 0;
}

void check(void) {
    CHECK(counts(is_first_and_third, sizeof(char[8 * ROOT_GPUS_MAX]), "0,1") && counts(is_none, 64, ""));
    CHECK(counts(is_any, 9, "0") && counts(is_any, 8, ""));
    const char *three = "/d MIG-1\n/de MIG-2\n/dev MIG-3\n";
    CHECK(is_selected(three, is_even, 64, "MIG-1,MIG-3") && is_selected(three, is_any, 64, "MIG-1,MIG-2,MIG-3"));
    CHECK(is_selected(three, is_any, 18, "MIG-1,MIG-2,MIG-3") && is_selected(three, is_any, 17, ""));
    CHECK(is_selected("", is_any, 64, "") && is_selected("/d\n\n/de \nd MIG-1\n", is_any, 64, ""));
}
