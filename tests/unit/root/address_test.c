/* Which addresses are this machine's. */
#include "address.c"

#include <arpa/inet.h>

#include "harness.h"

static bool is_here(int family, const char *text) {
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    void *bytes = family == AF_INET ? (void *)&((struct sockaddr_in *)&address)->sin_addr : (void *)&((struct sockaddr_in6 *)&address)->sin6_addr;
    CHECK(inet_pton(family, text, bytes) == 1);
    return root_address_is_here(&address);
}

/* The kernel's bytes are no input of a user's. */
const struct fuzz fuzzes[] = {{0}};

void check(void) {
    struct sockaddr_storage none = {.ss_family = AF_UNSPEC};
    CHECK(is_here(AF_INET, "127.0.0.1"));
    CHECK(!is_here(AF_INET, "192.0.2.1") && !is_here(AF_INET6, "2001:db8::1"));
    CHECK(!root_address_is_here(&none));
}
