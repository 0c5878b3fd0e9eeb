/* Planted faults, each behind an input that the search has to find by itself. test_root.py checks what it prints of them. */
#include "harness.h"

#include <limits.h>

static bool is_met(const char *text) { return text[0] == 'b' && text[1] == 'u' && text[2] == 'g'; }

static void overflow(char *text, size_t length) {
    if (is_met(text)) text[length + 1] = 0;
}

static void undefined(char *text, size_t length) {
    volatile int most = INT_MAX;
    if (is_met(text)) CHECK(most + (int)(length + 1) < 0);
}

static void descriptor(char *text, size_t length) {
    (void)length;
    if (is_met(text)) CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
}

static void memory(char *text, size_t length) {
    static char *volatile last;
    if (is_met(text)) last = malloc(length + 1);
    (void)last;
}

static void hang(char *text, size_t length) {
    volatile bool is_over = false;
    (void)length;
    while (is_met(text) && !is_over) continue;
}

static void crash(char *text, size_t length) {
    (void)length;
    if (is_met(text)) abort();
}

static void untrue(char *text, size_t length) {
    (void)length;
    CHECK(!is_met(text));
}

static const char *const words[] = {"slug", NULL};
const struct fuzz fuzzes[] = {{"overflow", overflow, words}, {"undefined", undefined, words}, {"descriptor", descriptor, words}, {"memory", memory, words},
                              {"hang", hang, words},         {"crash", crash, words},         {"untrue", untrue, words},         {0}};

void check(void) { CHECK(strcmp(words[0], "bug") == 0); }
