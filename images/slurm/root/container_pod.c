#include "container_pod.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "container_evict.h"
#include "container_flags.h"
#include "container_room.h"
#include "gone.h"
#include "owned.h"
#include "reason.h"
#include "run.h"

/* A user who has more trees waiting for the remover than that gets no container, nor one who has any where the disk is short: what is not removed yet
   still takes its room. */
enum { GONE_MAX = 1000, AWAIT_TRIES = 100 };

static int make_base(void) {
    if (mkdir("/var/spool/slipway", 0755) < 0 && errno != EEXIST) return root_fail("/var/spool/slipway: %m");
    if (mkdir(ROOT_CONTAINERS, 0711) < 0 && errno != EEXIST) return root_fail(ROOT_CONTAINERS ": %m");
    owned_fd base = open(ROOT_CONTAINERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat found;
    if (base < 0 || fstat(base, &found) < 0) return root_fail(ROOT_CONTAINERS ": %m");
    if (found.st_uid != 0) return root_fail(ROOT_CONTAINERS " does not belong to root");
    if ((found.st_mode & 07777) != 0711 && fchmod(base, 0711) < 0) return root_fail(ROOT_CONTAINERS ": %m");
    return root_hand_over(&base);
}

int root_container_open(uid_t user, gid_t group) {
    char name[16];
    struct stat found;
    snprintf(name, sizeof name, "%u", (unsigned)user);
    owned_fd base = make_base();
    if (base < 0) return -1;
    if (user == 0) return 0;
    if (mkdirat(base, name, 0700) < 0 && errno != EEXIST) return root_fail(ROOT_CONTAINERS "/%s: %m", name);
    owned_fd own = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0 || fstat(own, &found) < 0) return root_fail(ROOT_CONTAINERS "/%s: %m", name);
    if (found.st_uid != user && fchown(own, user, group) < 0) return root_fail(ROOT_CONTAINERS "/%s: %m", name);
    return 0;
}

int root_container_close(uid_t user, uint32_t job) {
    owned_fd base = make_base();
    if (base < 0) return -1;
    int result = container_forget_job(base, user, job);
    return container_ask(base, strtoul(container_asked->cache_mib, NULL, 10)) < 0 ? -1 : result;
}

int root_container_await(uid_t user) {
    const struct timespec pause = {.tv_nsec = 100 * 1000000};
    owned_fd base = make_base();
    unsigned count = 0;
    for (int tries = 0; base >= 0 && tries < AWAIT_TRIES; tries++) {
        count = root_gone_count(base, user, GONE_MAX);
        if (count < GONE_MAX && (count == 0 || !container_is_disk_short(base))) return 0;
        nanosleep(&pause, NULL);
    }
    if (base < 0) return -1;
    return root_fail("this node is still removing the files of %u%s of your earlier containers, and takes no new one of yours before: end what still "
                     "writes to them, or try again later or on another node", count, count < GONE_MAX ? "" : " or more");
}

int root_container_serve(uid_t user) {
    owned_fd base = make_base();
    return base < 0 ? -1 : container_room_serve(root_hand_over(&base), user, strtoul(container_asked->cache_mib, NULL, 10));
}
