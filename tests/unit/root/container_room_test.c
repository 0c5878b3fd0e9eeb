/* Requests for room: what a step asks for as fast as it is answered waits. */
#include "container_evict.c"
#include "container_room.c"

#include "harness.h"

const struct fuzz fuzzes[] = {{0}};

static double ask(int tasks, const char *request) {
    char text[64] = "";
    double begin = now_ms();
    CHECK(send(tasks, request, strlen(request), MSG_NOSIGNAL) > 0 && recv(tasks, text, sizeof text - 1, 0) > 0);
    CHECK(strcmp(text, geteuid() ? "unknown" : "room") == 0 || strcmp(request, "0") == 0);
    return now_ms() - begin;
}

void check(void) {
    double each = 0;
    owned_fd base = openat(scratch(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(base, "1000", 0700) == 0 && container_room_serve(root_hand_over(&base), 1000, 0) == 0);
    for (int i = 0; i < AT_ONCE; i++) each += ask(container_room_end(), "1");
    double late = ask(container_room_end(), "1");
    CHECK(late > (AGAIN_S - 1) * 1e3 - each && late < 30e3);
    CHECK(ask(container_room_end(), "0") < 1e3); /* giving room back does not wait */
    shutdown(container_room_end(), SHUT_RDWR);
    for (const int *open = (const int[]){container_room_end(), service.ours, service.mine, service.base, -1}; *open >= 0; open++) close(*open);
}
