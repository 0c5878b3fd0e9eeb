#include "lock.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>

#include "reason.h"

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int root_lock(int fd, const char *what, int seconds) {
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (double end = now() + seconds;;) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
        if (errno != EWOULDBLOCK && errno != EINTR) return root_fail("locking %s: %m", what);
        if (seconds == 0) return -2;
        if (now() > end) return root_fail("another process of this node has held the lock of %s for %d s", what, seconds);
        nanosleep(&pause, NULL);
    }
}
