#include "mpi_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "owned.h"

static socklen_t size_of(const struct sockaddr_storage *address) { return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6); }

static bool read_address(const char *text, uint16_t port, struct sockaddr_storage *address) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) memcpy(address, &four, sizeof four);
    else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) memcpy(address, &six, sizeof six);
    else return false;
    return true;
}

bool mpi_read_place(const char *text, struct mpi_place *place) {
    char copy[MPI_PLACE_MAX], *rest = copy, *end;
    *place = (struct mpi_place){0};
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy) return false;
    const char *key = strsep(&rest, " "), *number = strsep(&rest, " ");
    if (strlen(key) != MPI_KEY || number == NULL || *number < '0' || *number > '9') return false;
    unsigned long port = strtoul(number, &end, 10);
    if (port == 0 || port > UINT16_MAX || *end) return false;
    strcpy(place->key, key);
    for (const char *address; (address = strsep(&rest, " "));)
        if (place->count == MPI_ADDRESSES_MAX || !read_address(address, (uint16_t)port, &place->addresses[place->count++])) return false;
    return place->count > 0;
}

static bool is_for_others(const struct ifaddrs *each) {
    if (each->ifa_addr == NULL || !(each->ifa_flags & IFF_UP) || each->ifa_flags & IFF_LOOPBACK) return false;
    if (each->ifa_addr->sa_family == AF_INET) return true;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)each->ifa_addr;
    return each->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

bool mpi_add_addresses(char *text, size_t room) {
    struct ifaddrs *all;
    int count = 0;
    if (getifaddrs(&all) < 0) return false;
    for (const struct ifaddrs *each = all; each && count < MPI_ADDRESSES_MAX; each = each->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        if (!is_for_others(each)) continue;
        const void *bytes = each->ifa_addr->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr
                                                                 : (const void *)&((const struct sockaddr_in6 *)(const void *)each->ifa_addr)->sin6_addr;
        size_t used = strlen(text);
        if (inet_ntop(each->ifa_addr->sa_family, bytes, address, sizeof address) && used + strlen(address) + 2 < room) {
            snprintf(text + used, room - used, " %s", address);
            count++;
        }
    }
    freeifaddrs(all);
    return count > 0;
}

/* Where IPv6 is off, on the addresses of IPv4. */
static int bind_at(uint16_t port) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY), .sin_port = htons(port)};
    int off = 0;
    owned_fd made = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    bool is_bound = made >= 0 && bind(made, (struct sockaddr *)&six, sizeof six) == 0;
    if (!is_bound && (made < 0 || errno != EADDRINUSE)) {
        root_close_now(&made);
        made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        is_bound = made >= 0 && bind(made, (struct sockaddr *)&four, sizeof four) == 0;
    }
    return is_bound && listen(made, SOMAXCONN) == 0 ? root_hand_over(&made) : -1;
}

int mpi_listen(const uint16_t *range, uint16_t *port) {
    struct sockaddr_in6 bound;
    socklen_t size = sizeof bound;
    uint32_t count = range ? (uint32_t)range[1] - range[0] + 1 : 1, start = (uint32_t)getpid(); /* else many srun of one host try the same ports in turn */
    owned_fd made = -1;
    for (uint32_t i = 0; i < count && made < 0; i++) made = bind_at(range ? (uint16_t)(range[0] + (start % count + i) % count) : 0);
    if (made < 0 || getsockname(made, (struct sockaddr *)&bound, &size) < 0) return -1;
    *port = ntohs(bound.sin6_port); /* both kinds have it in the same place */
    return root_hand_over(&made);
}

static int begin(const struct sockaddr_storage *address) {
    owned_fd made = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0 || (connect(made, (const struct sockaddr *)address, size_of(address)) < 0 && errno != EINPROGRESS)) return -1;
    return root_hand_over(&made);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int mpi_reach(const struct mpi_place *place, int limit_ms) {
    struct pollfd tried[MPI_ADDRESSES_MAX];
    int reached = -1, failure = ETIMEDOUT, failed = 0;
    int64_t end = now_ms() + limit_ms;
    for (size_t i = 0; i < place->count; i++) {
        tried[i] = (struct pollfd){begin(&place->addresses[i]), POLLOUT, 0};
        if (tried[i].fd < 0) failure = errno;
    }
    while (reached < 0) {
        bool is_open = false;
        for (size_t i = 0; i < place->count; i++) is_open |= tried[i].fd >= 0;
        int64_t left = end - now_ms();
        if (!is_open) break;
        if (left <= 0) {
            failure = ETIMEDOUT;
            break;
        }
        if (poll(tried, place->count, (int)left) < 0 && errno != EINTR) break;
        for (size_t i = 0; i < place->count && reached < 0; i++) {
            socklen_t size = sizeof failed;
            if (tried[i].fd < 0 || !tried[i].revents) continue;
            if (getsockopt(tried[i].fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0) {
                reached = root_hand_over(&tried[i].fd);
            } else {
                failure = failed;
                root_close_now(&tried[i].fd);
            }
        }
    }
    for (size_t i = 0; i < place->count; i++) root_close_fd(&tried[i].fd);
    if (reached >= 0) fcntl(reached, F_SETFL, fcntl(reached, F_GETFL) & ~O_NONBLOCK);
    else errno = failure;
    return reached;
}
