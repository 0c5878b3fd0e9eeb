#include "container_hold.h"

#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "owned.h"
#include "reason.h"

#define END_MS 500 /* a holder that its user has stopped does not end */

static int ours = -1, holders = -1;

int root_container_hold(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return root_fail("a socket for the holder of the container: %m");
    ours = ends[0];
    holders = ends[1];
    const int yes = 1;
    setsockopt(ours, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
    return 0;
}

/* Of the process that has sent the holder's byte: the kernel says which it is. -1 where none has. */
static int open_holder(void) {
    char byte;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct ucred))];
    } control = {0};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(ours, &message, MSG_DONTWAIT) != 1) return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) return -1;
    struct ucred sender;
    memcpy(&sender, CMSG_DATA(header), sizeof sender);
    return (int)syscall(SYS_pidfd_open, sender.pid, 0);
}

static int left_ms(const struct timespec *since) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long passed = (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000;
    return passed < END_MS ? (int)(END_MS - passed) : 0;
}

void root_container_task_ended(spank_t spank) {
    static uint32_t ended;
    uint32_t tasks;
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || tasks == 0) tasks = 1;
    if (holders < 0 || ++ended != tasks) return;
    struct timespec since;
    clock_gettime(CLOCK_MONOTONIC, &since);
    owned_fd holder = open_holder();
    struct pollfd watched[] = {{.fd = ours}, {.fd = holder, .events = POLLIN}};
    root_close_now(&holders);
    shutdown(ours, SHUT_WR);
    poll(watched, 1, END_MS); /* it hangs up when nobody has the other end: the kernel closes that some ms before it unmounts and the process is gone */
    if (holder >= 0) poll(watched + 1, 1, left_ms(&since));
}

int container_hold_end(void) { return holders; }
