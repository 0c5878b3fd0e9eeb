#include "mpi_link.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpi_why.h"

static int link_socket = -1;
static const char *link_node = "this node";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void mpi_open_link(int hub, const char *node) {
    link_socket = hub;
    link_node = node;
}

void mpi_post(struct mpi_bytes *frame) {
    pthread_mutex_lock(&lock);
    bool is_sent = mpi_send(link_socket, frame->data, frame->size) == 0;
    pthread_mutex_unlock(&lock);
    mpi_free(frame);
    if (!is_sent) mpi_give_up("the connection to srun is gone");
}

void mpi_give_up(const char *format, ...) {
    char why[MPI_WHY_MAX];
    va_list arguments;
    snprintf(why, sizeof why / 2, "%s: ", link_node);
    size_t used = strlen(why);
    va_start(arguments, format);
    vsnprintf(why + used, sizeof why - used, format, arguments);
    va_end(arguments);
    mpi_why_write(".", why);
    if (pthread_mutex_trylock(&lock) == 0) { /* else another thread is in the middle of a frame; the hub hears the connection end */
        struct mpi_bytes frame = {0};
        size_t begin = mpi_begin(&frame, MPI_FAILED);
        mpi_put_text(&frame, why);
        mpi_end(&frame, begin);
        mpi_send(link_socket, frame.data, frame.size);
    }
    _exit(1);
}
