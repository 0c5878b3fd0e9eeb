#!/bin/bash
#SBATCH --job-name=prepare
#SBATCH --output=prepare.out
#SBATCH --mem=100M
#SBATCH --time=00:10:00
set -e
mkdir -p parts
seq 1 1000 | split -n l/4 -d - parts/numbers-
ls parts
