#include "address.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

static bool is_same(const struct sockaddr *first, const struct sockaddr *second) {
    if (first->sa_family != second->sa_family) return false;
    struct sockaddr_in a, b;
    struct sockaddr_in6 c, d;
    switch (first->sa_family) {
    case AF_INET:
        memcpy(&a, first, sizeof a);
        memcpy(&b, second, sizeof b);
        return a.sin_addr.s_addr == b.sin_addr.s_addr;
    case AF_INET6:
        memcpy(&c, first, sizeof c);
        memcpy(&d, second, sizeof d);
        return memcmp(&c.sin6_addr, &d.sin6_addr, sizeof c.sin6_addr) == 0;
    default:
        return false;
    }
}

bool root_address_is_here(const struct sockaddr_storage *address) {
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0) return true;
    bool is_here = false;
    for (const struct ifaddrs *each = all; each && !is_here; each = each->ifa_next)
        is_here = each->ifa_addr && is_same(each->ifa_addr, (const struct sockaddr *)address);
    freeifaddrs(all);
    return is_here;
}
