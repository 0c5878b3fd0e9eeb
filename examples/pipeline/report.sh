#!/bin/bash
#SBATCH --job-name=report
#SBATCH --output=report.out
#SBATCH --mem=100M
#SBATCH --time=00:10:00
set -e
cat parts/sum-* | awk '{ sum += $1 } END { print "the sum is", sum }'
