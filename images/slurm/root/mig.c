#include "mig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "owned.h"

static char kept[ROOT_MIG_MAX];

void root_mig_select(char *list, bool (*is_open)(const char *file), char *names, size_t size) {
    size_t end = 0;
    *names = 0;
    for (char *line; (line = strsep(&list, "\n"));) {
        char *uuid = strchr(line, ' ');
        if (uuid == NULL) continue;
        *uuid++ = 0;
        size_t length = strlen(uuid);
        if (*line != '/' || length == 0 || !is_open(line)) continue;
        if (end + length + 2 > size) {
            *names = 0; /* some of a task's instances would be none of its own choice */
            return;
        }
        if (end) names[end++] = ',';
        memcpy(names + end, uuid, length + 1);
        end += length;
    }
}

void root_mig_keep(void) {
    owned_fd file = open(ROOT_MIG_LIST, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, kept, sizeof kept - 1);
    kept[length > 0 ? length : 0] = 0;
}

/* The kernel refuses the devices of others. A simulated one has nothing behind it. */
static bool is_ours(const char *path) {
    owned_fd file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return file >= 0 || errno == ENXIO || errno == ENODEV;
}

const char *root_mig_names(void) {
    static char names[ROOT_MIG_MAX]; /* a task's process calls it once */
    root_mig_select(kept, is_ours, names, sizeof names);
    return names;
}

void root_gpus_count(bool (*is_open)(const char *file), char *names, size_t size) {
    char path[32];
    size_t end = 0;
    int visible = 0;
    *names = 0;
    for (int gpu = 0; gpu < ROOT_GPUS_MAX && end + 8 < size; gpu++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", gpu);
        if (is_open(path)) end += (size_t)snprintf(names + end, size - end, "%s%d", end ? "," : "", visible++);
    }
}

const char *root_gpus_visible(void) {
    static char numbers[8 * ROOT_GPUS_MAX]; /* one session a process */
    if (*kept) return root_mig_names();
    root_gpus_count(is_ours, numbers, sizeof numbers);
    return numbers;
}
