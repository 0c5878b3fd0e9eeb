help([[MPICH: mpicc, mpirun and their peers instead of OpenMPI's.]])
whatis("MPICH of Debian")
family("mpi")
prepend_path("PATH", "/opt/mpi/mpich/bin")
