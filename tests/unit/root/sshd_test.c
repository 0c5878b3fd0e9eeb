/* Locales that a client sends: each variable stays, or becomes C.UTF-8 under the same name. */
#include "sshd.c"

#include "harness.h"

static bool becomes(const char *variable, const char *wanted) { return strcmp(usable(variable), wanted) == 0; }

static void run_locale(char *text, size_t length) {
    const char *given = usable(text);
    (void)length;
    if (given == text) return;
    size_t name = strcspn(given, "=") + 1;
    CHECK(strncmp(text, given, name) == 0 && strcmp(given + name, "C.UTF-8") == 0);
}

static const char *const words[] = {"LANG=de_DE.UTF-8", "LC_ALL=C.UTF-8", "LC_CTYPE=UTF-8", "LC_TIME=", "LANG=LC_CTYPE=C;LC_TIME=C", "LC_ALL=", "LANG=", "C", "POSIX",
                                    ".utf8", "@euro", "../", ";", NULL};
const struct fuzz fuzzes[] = {{"locale", run_locale, words}, {0}};

void check(void) {
    CHECK(becomes("LANG=C", "LANG=C") && becomes("LC_ALL=POSIX", "LC_ALL=POSIX") && becomes("LANG=", "LANG="));
    CHECK(becomes("LANG=xx_XX.none", "LANG=C.UTF-8") && becomes("LC_PAPER=xx_XX.none", "LC_PAPER=C.UTF-8"));
    CHECK(becomes("LANGUAGE=xx_XX.none", "LANGUAGE=xx_XX.none") && becomes("HOME=/xx", "HOME=/xx") && becomes("", "") && becomes("LANG", "LANG"));
}
