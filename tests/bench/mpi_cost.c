/* Prints the longest MPI_Init of all ranks in ms and, when told to ping, the median time of a message of 8 bytes and of 1 MiB there and back, in us. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SMALL = 8, LARGE = 1 << 20, ROUNDS = 2001, LARGE_ROUNDS = 201 };
static char message[LARGE];

static int compare(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }

/* Seconds, also before MPI_Init, when MPI_Wtime may still count from another start. */
static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double there_and_back(int rank, int other, int size, int rounds) {
    static double took[ROUNDS];
    for (int n = 0; n < rounds; n++) {
        double begin = now();
        if (rank == 0) MPI_Send(message, size, MPI_CHAR, other, 0, MPI_COMM_WORLD);
        MPI_Recv(message, size, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank) MPI_Send(message, size, MPI_CHAR, other, 0, MPI_COMM_WORLD);
        took[n] = now() - begin;
    }
    qsort(took, (size_t)rounds, sizeof *took, compare);
    return took[rounds / 2] * 1e6;
}

int main(int count, char **arguments) {
    int rank, ranks;
    double began = now(), took, longest;
    MPI_Init(&count, &arguments);
    took = (now() - began) * 1e3;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    double small = 0, large = 0;
    if (count > 1) {
        small = there_and_back(rank, ranks - 1 - rank, SMALL, ROUNDS);
        large = there_and_back(rank, ranks - 1 - rank, LARGE, LARGE_ROUNDS);
    }
    if (rank == 0) printf("%.1f %.2f %.1f\n", longest, small, large);
    MPI_Finalize();
    return 0;
}
