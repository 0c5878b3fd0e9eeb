help([[MPICH: mpicc, mpirun and their peers instead of OpenMPI's.]])
whatis("MPICH of Debian")
family("mpi")
setenv("MPI4PY_MPIABI", "mpich") -- mpi4py of the Python package index has both, and OpenMPI otherwise
prepend_path("PATH", "/opt/mpi/mpich/bin")
