#!/bin/bash
# PyTorch over two nodes: one torchrun on each, which starts a process for each GPU, or two without GPUs.
#   python3 -m venv ~/envs/torch && ~/envs/torch/bin/pip install torch numpy
#   sbatch torch.sh                      # add --gpus-per-node=8 for GPUs
#SBATCH --job-name=torch
#SBATCH --output=torch.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --mem=2000M
#SBATCH --time=00:10:00
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export MASTER_ADDR MASTER_PORT OMP_NUM_THREADS
srun ~/envs/torch/bin/torchrun --nnodes="$SLURM_NNODES" --nproc-per-node="${SLURM_GPUS_ON_NODE:-2}" \
  --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" --rdzv-id="$SLURM_JOB_ID" train_torch.py
