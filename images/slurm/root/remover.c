/* Removes what prologs, epilogs and evictions took out of users' reach (gone.h), takes away what jobs left whose epilog never ran, and keeps the cache of
   images within its bound. The worker's program runs it beside slurmd, for as long as the pod lives, in no job's cgroup. It gives way to jobs: one user's
   trees have it work for a third of the time, and it has a tenth of a CPU where jobs want all. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conf.h"
#include "container_evict.h"
#include "enter.h"
#include "gone.h"
#include "group.h"
#include "owned.h"
#include "reason.h"
#include "run.h"

enum { PRIORITY = 10, IO_PRIORITY = 2 << 13 | 7 }; /* the last of the usual class, as ioprio_set(2) has it */
enum { PAUSE_MS = 200, STUCK_MS = 10000, CALM_MS = 1000, ROUND_MS = 60000, BLIND_MS = 2000 };
#define TURN_S 0.1

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A line for each new reason. */
static void complain(void) {
    static char last[1024];
    if (*root_reason() && strncmp(last, root_reason(), sizeof last - 1) != 0) fprintf(stderr, "%s\n", root_reason());
    snprintf(last, sizeof last, "%s", root_reason());
    root_reason_clear();
}

static void give_way(void) {
    setpriority(PRIO_PROCESS, 0, PRIORITY);
    syscall(SYS_ioprio_set, 1, 0, IO_PRIORITY);
    root_group_offer();
    root_reason_clear();
}

/* True where there is more to take away than this. */
static bool look_around(const struct root_conf *conf, bool has_conf, int containers) {
    unsigned long bound_mib;
    bool has_swept = containers >= 0 && container_sweep(containers, ROOT_PINS);
    if (has_conf) root_jobs_sweep(conf);
    if (containers >= 0 && container_is_asked(containers, &bound_mib)) container_evict(containers, bound_mib);
    return has_swept;
}

static void watch(int news, int base) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/" ROOT_GONE, base);
    if (base >= 0) inotify_add_watch(news, path, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
}

/* Until something new comes, or it is time. A machine may have no more watches. */
static bool await(int news, double ms) {
    char events[4096];
    struct pollfd wait = {.fd = news, .events = POLLIN};
    if (news < 0 && ms > BLIND_MS) ms = BLIND_MS;
    bool is_new = poll(&wait, 1, ms > 0 ? (int)ms : 0) > 0;
    while (is_new && read(news, events, sizeof events) > 0) continue;
    return is_new;
}

/* Both folders may come later, and be mounted anew. */
static enum root_gone remove_some(int news, bool looks, bool *has_more) {
    owned_conf conf = malloc(sizeof *conf);
    bool has_conf = conf && root_conf_read(ROOT_CONF_PATH, conf) > 0;
    owned_fd containers = open(ROOT_CONTAINERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (looks) *has_more = look_around(conf, has_conf, containers);
    owned_fd jobs = has_conf ? open(conf->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    watch(news, containers), watch(news, jobs);
    enum root_gone first = root_gone_remove(containers, TURN_S), second = root_gone_remove(jobs, TURN_S);
    complain();
    if (first == GONE_LEFT || second == GONE_LEFT) return GONE_LEFT;
    return first == GONE_EMPTY && second == GONE_EMPTY ? GONE_EMPTY : GONE_STUCK;
}

int main(void) {
    owned_fd news = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    enum root_gone left = GONE_EMPTY;
    bool is_wanted = true, has_more = false;
    double looked = -ROUND_MS;
    give_way();
    for (;;) {
        /* What was taken away a moment ago still takes its room: another eviction waits for that, but not for long, as somebody may go on filling it. */
        bool looks = now_ms() >= looked + (is_wanted && left == GONE_EMPTY ? CALM_MS : ROUND_MS);
        if (looks) looked = now_ms(), is_wanted = false;
        left = remove_some(news, looks, &has_more);
        is_wanted |= has_more;
        double rest = looked + (is_wanted ? CALM_MS : ROUND_MS) - now_ms();
        is_wanted |= await(news, left == GONE_LEFT ? PAUSE_MS : left == GONE_STUCK ? STUCK_MS : rest);
    }
}
