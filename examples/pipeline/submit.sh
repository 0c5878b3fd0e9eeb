#!/bin/bash
# A pipeline: each stage begins when the one before has ended well. A stage that fails leaves the later ones out of the queue.
#   ./submit.sh
set -e
first=$(sbatch --parsable prepare.sh)
second=$(sbatch --parsable --dependency=afterok:"$first" --kill-on-invalid-dep=yes count.sh)
third=$(sbatch --parsable --dependency=afterok:"$second" --kill-on-invalid-dep=yes report.sh)
echo "$third"
