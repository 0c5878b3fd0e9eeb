#include "container_room.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "container_evict.h"
#include "owned.h"
#include "reason.h"

/* A step pulls once, or a few times. More requests at once wait: they cost others the cache's lock. */
enum { AT_ONCE = 4, AGAIN_S = 2 };

static struct {
    int base, mine, ours;
    pid_t parent;
    uid_t user;
    unsigned long bound_mib;
} service;

static int tasks_end = -1;

static void write_answer(int result, const struct container_room *room, char *text, size_t size) {
    if (result < 0) snprintf(text, size, "unknown");
    else if (room->verdict == CONTAINER_CACHE_FULL) snprintf(text, size, "cache %lu %lu", room->mib, room->bound_mib);
    else if (room->verdict == CONTAINER_DISK_FULL) snprintf(text, size, "disk %lu", room->mib);
    else snprintf(text, size, "room");
}

static void answer(unsigned long needed, int result) {
    char text[64];
    struct container_room room = {0};
    if (result == 0)
        result = container_reserve(service.base, service.user, service.mine, service.bound_mib, needed < CONTAINER_MIB_MAX ? needed : CONTAINER_MIB_MAX, &room);
    write_answer(result, &room, text, sizeof text);
    send(service.ours, text, strlen(text), MSG_NOSIGNAL);
}

static void __attribute__((noreturn)) answer_as_root(unsigned long needed) {
    int result = setresuid(0, 0, 0) < 0 ? -1 : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user takes it back */
    if (getppid() == service.parent) answer(needed, result);
    _exit(0);
}

static time_t pause_before(time_t next) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t begin = next > now.tv_sec ? next : now.tv_sec;
    struct timespec until = {.tv_sec = begin - (AT_ONCE - 1) * AGAIN_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
    return begin + AGAIN_S;
}

/* What makes room has a process: slurmstepd takes its user's id at times, for all of its threads. It may be slurmstepd's main thread that meets its
   end, and then looks for that of its tasks 100 ms later (26.05). So nothing is forked where room is given back, as at the start of each container. */
static void *serve(void *none) {
    (void)none;
    char request[24];
    time_t next = 0; /* when there has been a pause for each request so far */
    for (ssize_t got; (got = recv(service.ours, request, sizeof request - 1, 0)) > 0 || (got < 0 && errno == EINTR);) {
        if (got < 0) continue;
        request[got] = 0;
        unsigned long needed = strtoul(request, NULL, 10);
        if (needed) next = pause_before(next);
        pid_t child = needed ? fork() : -1;
        if (child == 0) answer_as_root(needed);
        if (child < 0) answer(needed, needed ? -1 : 0);
        while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
    }
    return NULL;
}

int container_room_serve(int base, uid_t user, unsigned long bound_mib) {
    int ends[2];
    pthread_t thread;
    sigset_t all, before;
    owned_fd held = base;
    owned_fd mine = container_open_reservation(base, (unsigned)getpid());
    if (mine < 0) return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return root_fail("a socket for tasks: %m");
    owned_fd ours = ends[0], theirs = ends[1];
    service.base = held, service.mine = mine, service.ours = ours, service.user = user, service.bound_mib = bound_mib, service.parent = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(&thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) return root_fail("a thread that makes room for images: %s", strerror(failure));
    pthread_detach(thread);
    root_hand_over(&held), root_hand_over(&mine), root_hand_over(&ours);
    tasks_end = root_hand_over(&theirs);
    return 0;
}

int container_room_end(void) { return tasks_end; }
