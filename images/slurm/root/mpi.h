/* OpenMPI from release 5 on finds the other ranks by PMIx alone. Where there is no PMIx server, each task of a step takes itself for the only one:
   rank 0 of 1, without a word, and with the exit code 0. Slurm has no PMIx here, so such a start is made to fail, with a reason. */
#ifndef SLIPWAY_MPI_H
#define SLIPWAY_MPI_H

#include <stdbool.h>

/* A variable for the environment of a task. OpenMPI looks for a component of the framework `part` by the name that it holds, finds none, and
   ends with a message that shows the name. Releases before 5 have no such framework, and other kinds of MPI do not read it. */
#define ROOT_MPI_NAME "OMPI_MCA_part"
#define ROOT_MPI_VALUE "srun starts no ranks of OpenMPI here - start the program with mpirun in a batch job or salloc - or set OMPI_MCA_part= for single processes"

/* True for the command of a step that is one of OpenMPI's own daemons: mpirun starts them by srun, and they bring a PMIx server. */
bool root_mpi_is_daemon(const char *command);

#endif
