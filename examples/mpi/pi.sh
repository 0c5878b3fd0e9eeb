#!/bin/bash -l
# MPI over two nodes. Compiled in the job, so that compiler and libraries are those of the nodes.
#   sbatch pi.sh
# With MPICH instead of OpenMPI: module load mpi/mpich, before sbatch or before mpicc below.
#SBATCH --job-name=pi
#SBATCH --output=pi.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --mem-per-cpu=200M
#SBATCH --time=00:10:00
mpicc -O2 pi.c -o pi
srun ./pi
