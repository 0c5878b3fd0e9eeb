#!/bin/bash
# One task for each part.
#SBATCH --job-name=count
#SBATCH --output=count-%a.out
#SBATCH --array=0-3
#SBATCH --mem=100M
#SBATCH --time=00:10:00
set -e
awk '{ sum += $1 } END { print sum }' "parts/numbers-0$SLURM_ARRAY_TASK_ID" >"parts/sum-$SLURM_ARRAY_TASK_ID"
