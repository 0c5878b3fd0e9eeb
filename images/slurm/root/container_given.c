#include "container_given.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "container_ends.h"

struct container_given given;

void container_stop(const char *format, ...) {
    char text[8192];
    int failure = errno;
    va_list more;
    va_start(more, format);
    errno = failure;
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    dprintf(2, "slipway: %s: %s\n", given.node ? given.node : "container", text);
    container_end();
}

void container_end(void) {
    if (write(CONTAINER_FD_READY, "0", 1) != 1) exit(1); /* when it saves, nobody reads that */
    exit(1);
}

void container_read_arguments(int count, char **words) {
    struct {
        const char *key;
        const char **into;
    } const keys[] = {{"base", &given.base},       {"state", &given.state},   {"step", &given.step},       {"node", &given.node},
                      {"image", &given.image},     {"record", &given.record}, {"home", &given.home},       {"passwd", &given.passwd},
                      {"group", &given.group},     {"script", &given.script}, {"workdir", &given.workdir}, {"registry", &given.registry},
                      {"cache", &given.cache},     {"mounts", &given.mounts}, {"save", &given.save},
                      {"slurm", &given.slurm}};
    for (int i = 1; i < count; i++) {
        bool is_known = false;
        size_t length = strcspn(words[i], "=");
        if (strcmp(words[i], "join") == 0) is_known = given.joins = true;
        if (strcmp(words[i], "remap") == 0) is_known = given.remap = true;
        if (strcmp(words[i], "readonly") == 0) is_known = given.readonly = true;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (strlen(keys[k].key) != length || strncmp(words[i], keys[k].key, length) != 0 || words[i][length] == 0) continue;
            *keys[k].into = words[i] + length + 1;
            is_known = true;
        }
        if (!is_known) container_stop("unknown argument %.100s", words[i]);
    }
    if (!given.base || !given.state || !given.step || !given.node) container_stop("needs base=, state=, step= and node=");
}

bool container_read_text(int folder, const char *name, char *into, size_t room) {
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, into, room - 1);
    if (file >= 0) close(file);
    into[length < 0 ? 0 : length] = 0;
    into[strcspn(into, "\n")] = 0;
    return length > 0;
}

void container_write_text(int folder, const char *name, const char *text) {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) container_stop("%s/%s: %m", given.state, name);
    close(file);
}

bool container_is_id(const char *text) { return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64; }
