/* The setting for a job's processes, and lists of CPUs. */
#include "limit.c"

#include "harness.h"

static void run_setting(char *text, size_t length) {
    unsigned long most = 0;
    (void)length;
    char *cpus = strchr(text, '\n');
    if (cpus) *cpus++ = 0;
    if (root_limit_read(text, cpus ? cpus : "", &most)) CHECK(strchr(text, '+') && strpbrk(text, "0123456789"));
    else CHECK(most == 0);
}

static const char *const words[] = {"4096+256\n0-3,6", "4096+256", "+", "-", ",", "0-3", "18446744073709551615", "\n", NULL};
const struct fuzz fuzzes[] = {{"limit", run_setting, words}, {0}};

static unsigned long most_of(const char *setting, const char *cpus) {
    unsigned long most = 0;
    return root_limit_read(setting, cpus, &most) ? most : 0;
}

void check(void) {
    CHECK(most_of("100+10", "0-3,6") == 150 && most_of("100+10", "") == 100 && most_of("100+10", "5") == 110 && most_of("1+1", "0-1,4-5,9") == 6);
    CHECK(most_of("100+10", "3-1,7") == 100 && most_of("100+10", "2,x,3") == 110);
    CHECK(most_of("100", "0") == 0 && most_of("", "0") == 0 && most_of("a+b", "0") == 0);
}
