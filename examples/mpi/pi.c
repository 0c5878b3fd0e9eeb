/* Pi by numerical integration; each rank takes every size-th slice. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const long slices = 10000000;
    int rank, size;
    double mine = 0, pi;
    char host[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &(int){0});
    MPI_Get_library_version(library, &(int){0});
    for (long i = rank; i < slices; i += size) {
        double x = (i + 0.5) / slices;
        mine += 4 / (1 + x * x);
    }
    MPI_Reduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    printf("rank %d of %d on %s\n", rank, size, host);
    if (rank == 0) printf("pi is %.10f\nlibrary: %.*s\n", pi / slices, (int)strcspn(library, ",\n"), library);
    return MPI_Finalize();
}
