#!/bin/bash -l
# A step in a container: the program is of the image, the data of the home.
#   ./build.sh && sbatch job.sh
#SBATCH --job-name=words
#SBATCH --output=words.out
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --mem-per-cpu=200M
#SBATCH --time=00:10:00
mkdir -p data
echo "a rose is a rose is a rose" >data/rose.txt
srun --label --container-image="$PWD/words.sqsh" --container-mounts="$PWD/data:/data:ro" words /data/rose.txt
