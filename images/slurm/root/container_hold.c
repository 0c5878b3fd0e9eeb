#include "container_hold.h"

#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

#include "owned.h"
#include "reason.h"

#define END_MS 500 /* a holder that its user has stopped does not end */

static int ours = -1, holders = -1;

int root_container_hold(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return root_fail("a socket for the holder of the container: %m");
    ours = ends[0];
    holders = ends[1];
    return 0;
}

void root_container_task_ended(spank_t spank) {
    static uint32_t ended;
    uint32_t tasks;
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || tasks == 0) tasks = 1;
    if (holders < 0 || ++ended != tasks) return;
    struct pollfd watched = {.fd = ours};
    root_close_now(&holders);
    shutdown(ours, SHUT_WR);
    poll(&watched, 1, END_MS); /* it hangs up when nobody has the other end */
}

int container_hold_end(void) { return holders; }
