/* What the helpers of MPI say to each other: between a node's server (mpi_server.c) and the hub beside srun (mpi_hub.c), over TCP, and between a task
   and the server of its node, over a socket in the job's /tmp. All of them run as the job's user. A frame is a kind, a length and that many bytes;
   numbers are in network order. */
#ifndef SLIPWAY_MPI_FRAME_H
#define SLIPWAY_MPI_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPI_KEY 32           /* hexadecimal digits that every node shows to the hub */
#define MPI_FRAME_MAX (256u << 20)
#define MPI_HELLO_MAX (1u << 20)
#define MPI_NODES_MAX 4096u

enum mpi_kind {
    MPI_HELLO = 1, /* node to hub: key, number of nodes, own number, name, ranks */
    MPI_READY,     /* node to hub: libpmix has started */
    MPI_TABLE,     /* hub to all nodes, when all are ready: name and ranks of each node */
    MPI_FENCE,     /* node to hub: own number of the fence, nodes in it, what it is called, data */
    MPI_FENCED,    /* hub to node: that number, status, data of all */
    MPI_ASK,       /* node to node by the hub: the other node, own number of the question, rank */
    MPI_ANSWER,    /* and back: the other node, its number, status, data */
    MPI_ABORT,     /* node to hub: text for the user; the step is ended */
    MPI_FAILED,    /* before the table, node to hub and then hub to all nodes: why there will be none */
};

/* Bytes to send, or that came. Zeroed is empty. */
struct mpi_bytes {
    char *data;
    size_t size, room;
};

/* These abort where memory is out: the step's MPI is over then. */
void mpi_put(struct mpi_bytes *bytes, const void *data, size_t size);
void mpi_put_number(struct mpi_bytes *bytes, uint32_t number);
void mpi_put_text(struct mpi_bytes *bytes, const char *text); /* with its end */
void mpi_free(struct mpi_bytes *bytes);

/* Begins a frame, and ends it when all of it has been put: gives where it begins, and writes its length there. */
size_t mpi_begin(struct mpi_bytes *bytes, enum mpi_kind kind);
void mpi_end(struct mpi_bytes *bytes, size_t begin);

/* A frame that has come whole: its kind, and its content in place. 0 where more has to come, -1 where it is longer than `most`. */
int mpi_next(const struct mpi_bytes *bytes, size_t most, enum mpi_kind *kind, const char **content, size_t *size);
void mpi_drop(struct mpi_bytes *bytes, size_t content); /* the frame with so much content */

/* What is left to read of a frame's content. Reading beyond the end makes it bad, and gives zeros. */
struct mpi_reader {
    const char *at, *end;
    bool is_bad;
};
struct mpi_reader mpi_read(const char *content, size_t size);
uint32_t mpi_get_number(struct mpi_reader *reader);
const char *mpi_get_text(struct mpi_reader *reader); /* "" when bad */
const char *mpi_get(struct mpi_reader *reader, size_t size);

/* `1,3,4` to numbers below `most`, in order and each once; -1 where it is anything else. Gives how many there are. */
int mpi_read_ranks(const char *text, uint32_t *ranks, uint32_t most);

/* True for the command of a step that is one of OpenMPI's own daemons: mpirun starts them by srun, and they bring a PMIx server. */
bool mpi_is_daemon(const char *command);

/* Sends all of it to a socket that blocks. -1 with errno. */
int mpi_send(int socket, const void *data, size_t size);
/* Reads so many bytes; -1 at the end or an error. */
int mpi_receive(int socket, void *data, size_t size);

#endif
