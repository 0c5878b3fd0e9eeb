help([[OpenMPI: mpicc, mpirun and their peers. Also the default without any module.]])
whatis("OpenMPI of Debian")
family("mpi")
prepend_path("PATH", "/opt/mpi/openmpi/bin")
