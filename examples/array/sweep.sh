#!/bin/bash
# A sweep: one task for each learning rate, at most four at once.
#   sbatch sweep.sh
#   sort -g -k2 sweep-*.out | head -1      # the best, once all have ended
#SBATCH --job-name=sweep
#SBATCH --array=0-7%4
#SBATCH --output=sweep-%a.out
#SBATCH --mem=200M
#SBATCH --time=00:10:00
rates=(0.001 0.003 0.01 0.03 0.1 0.3 0.5 0.7)
python3 fit.py "${rates[SLURM_ARRAY_TASK_ID]}"
