"""An MPI program: rank, host, and the sum of all ranks, which crosses the network. Through ctypes, so that no compiler is needed."""

import ctypes
import socket

mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)


def handle(name: str) -> ctypes.c_void_p:
    """The address of one of OpenMPI's predefined objects, which is its handle in C."""
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


world, integer, add = handle("ompi_mpi_comm_world"), handle("ompi_mpi_int"), handle("ompi_mpi_op_sum")
mpi.MPI_Init(None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, integer, add, world)
print(f"rank {rank.value} of {size.value} on {socket.gethostname()}: sum {total.value}", flush=True)
mpi.MPI_Finalize()
