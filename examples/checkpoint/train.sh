#!/bin/bash
# Training that is longer than the time limit: Slurm sends USR1 to this script 60 s before the end, the program saves its place, and the job
# goes back to the queue. After a node failure it begins again from the last checkpoint as well.
#   sbatch train.sh
#SBATCH --job-name=train
#SBATCH --output=train.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@60
#SBATCH --mem=200M
#SBATCH --time=00:10:00
python3 train.py "${STEPS:-10000}" &
program=$!
trap 'kill -USR1 $program' USR1
wait $program
code=$?
if [ $code -gt 128 ]; then # the signal came: wait for the program to save
  wait $program
  code=$?
fi
[ $code = 75 ] || exit $code
echo "queued again"
scontrol requeue "$SLURM_JOB_ID"
