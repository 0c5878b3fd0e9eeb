/* For sshd, by LD_PRELOAD: no session starts with a locale that its root lacks. A client sends its own LANG and LC_*, and one that cannot be had
   gives way to C.UTF-8. Programs complain otherwise, and bash of LC_ALL before it reads any file. sshd takes the client's variables over after
   PAM, so a PAM module could not do it. */
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <stddef.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
enum { VARIABLES_MAX = 4096 };
typedef int execute(const char *path, char *const words[], char *const variables[]);
EXPORTED execute execve;

static const struct {
    const char *name, *instead;
    int mask;
} categories[] = {
#define CATEGORY(name, mask) {name "=", name "=C.UTF-8", mask}
    CATEGORY("LANG", LC_ALL_MASK),
    CATEGORY("LC_ALL", LC_ALL_MASK),
    CATEGORY("LC_CTYPE", LC_CTYPE_MASK),
    CATEGORY("LC_NUMERIC", LC_NUMERIC_MASK),
    CATEGORY("LC_TIME", LC_TIME_MASK),
    CATEGORY("LC_COLLATE", LC_COLLATE_MASK),
    CATEGORY("LC_MONETARY", LC_MONETARY_MASK),
    CATEGORY("LC_MESSAGES", LC_MESSAGES_MASK),
    CATEGORY("LC_PAPER", LC_PAPER_MASK),
    CATEGORY("LC_NAME", LC_NAME_MASK),
    CATEGORY("LC_ADDRESS", LC_ADDRESS_MASK),
    CATEGORY("LC_TELEPHONE", LC_TELEPHONE_MASK),
    CATEGORY("LC_MEASUREMENT", LC_MEASUREMENT_MASK),
    CATEGORY("LC_IDENTIFICATION", LC_IDENTIFICATION_MASK),
};

static const char *usable(const char *variable) {
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        size_t length = strlen(categories[i].name);
        if (strncmp(variable, categories[i].name, length) != 0 || variable[length] == 0) continue;
        locale_t found = newlocale(categories[i].mask, variable + length, (locale_t)0);
        if (found == (locale_t)0) return categories[i].instead;
        freelocale(found);
    }
    return variable;
}

EXPORTED int execve(const char *path, char *const words[], char *const variables[]) {
    static const char *seen[VARIABLES_MAX];
    execute *next = (execute *)dlsym(RTLD_NEXT, "execve");
    size_t count = 0;
    if (next == NULL) {
        errno = ENOSYS;
        return -1;
    }
    for (; variables && variables[count] && count < VARIABLES_MAX - 1; count++) seen[count] = usable(variables[count]);
    if (variables == NULL || variables[count]) return next(path, words, variables);
    seen[count] = NULL;
    return next(path, words, (char *const *)seen);
}
