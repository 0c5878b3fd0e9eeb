/* OpenMPI from release 5 on finds the other ranks by PMIx alone, which Slurm's packages lack. So every step with several tasks has a PMIx server on
   each node (mpi_server.c), and a hub beside its srun (mpi_hub.c): programs of their own, which run as the job's user. Without a server each task
   would take itself for the only one, rank 0 of 1, without a word and with the exit code 0. Where there is none, such a start is made to fail,
   with a reason. */
#ifndef SLIPWAY_MPI_H
#define SLIPWAY_MPI_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>

/* A variable for the environment of a task. OpenMPI looks for a component of the framework `part` by the name that it holds, finds none, and
   ends with a message that shows the name. Releases before 5 have no such framework, and other kinds of MPI do not read it. */
#define ROOT_MPI_NAME "OMPI_MCA_part"
#define ROOT_MPI_VALUE "srun has no PMIx server for this step%s - start the program with mpirun in a batch job or salloc - or set OMPI_MCA_part= for single processes"

/* Of srun for the nodes: the key, the port, and the addresses at which the hub may be reached. Slurm hands on what begins with SLURM_, also under
   --export=NONE. */
#define ROOT_MPI_HUB "SLURM_SLIPWAY_MPI"

/* In srun: the first before it has a job, as it may copy its environment then, and so for each part of a heterogeneous step; the second before it
   launches a step, for all parts together. Where they fail, the step goes without. */
void root_mpi_open(void);   /* listens, and tells the environment where */
void root_mpi_launch(void); /* starts the hub there */

/* In slurmstepd, before the tasks and after each of them. With the last task the server ends, and is waited for: slurmstepd looks for what is left in
   the step's cgroup at once, and then not before a second is over. */
void root_mpi_prepare(void);
void root_mpi_task_ended(spank_t spank);

/* In a task's process: true where its step has several tasks, all parts of a heterogeneous step taken together. */
bool root_mpi_is_for(spank_t spank);

/* There, as its user and inside the job's root: starts the node's server where it is the node's first task, and gets the task's variables. True when
   it has them; else `why` has the reason, if any is known. A server that cannot start is noticed at once, a hub that does not answer after 5 s, and
   other nodes that do not reach the hub after 15 s. */
bool root_mpi_join(spank_t spank, char *why, size_t room);

#endif
