#!/bin/bash
# Data-parallel training over two nodes, one process for each task.
#   sbatch numpy.sh
#SBATCH --job-name=numpy
#SBATCH --output=numpy.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --mem-per-cpu=300M
#SBATCH --time=00:10:00
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
MASTER_KEY=$(head -c 16 /dev/urandom | base64)
OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export MASTER_ADDR MASTER_PORT MASTER_KEY OMP_NUM_THREADS
srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS exec python3 train_numpy.py'
