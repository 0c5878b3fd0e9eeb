/* Which commands of steps are OpenMPI's own daemons. */
#include "mpi.c"

#include "harness.h"

static void run_command(char *text, size_t length) {
    (void)length;
    size_t shown = strlen(text);
    if (root_mpi_is_daemon(text)) CHECK(shown >= 5 && (shown == 5 || text[shown - 6] == '/') && strcmp(text + shown - 3, "ted") == 0);
}

static const char *const words[] = {"/usr/bin/prted", "orted", "prted", "/", NULL};
const struct fuzz fuzzes[] = {{"command", run_command, words}, {0}};

void check(void) {
    CHECK(root_mpi_is_daemon("orted") && root_mpi_is_daemon("/usr/bin/prted") && root_mpi_is_daemon("/prted"));
    CHECK(!root_mpi_is_daemon("") && !root_mpi_is_daemon("/usr/bin/prted/") && !root_mpi_is_daemon("xorted") && !root_mpi_is_daemon("prted2"));
}
