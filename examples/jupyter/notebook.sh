#!/bin/bash
# JupyterLab in a job. Its output says how to reach it from your own machine.
#   python3 -m venv ~/envs/jupyter && ~/envs/jupyter/bin/pip install jupyterlab
#   sbatch notebook.sh                   # add --gpus=1 for a GPU
#   cat notebook.out
#SBATCH --job-name=notebook
#SBATCH --output=notebook.out
#SBATCH --mem=1G
#SBATCH --time=08:00:00
node=$(hostname)
port=$((20000 + SLURM_JOB_ID % 10000))
# In the environment and in an output file that nobody else can read; a command line could be read by all on the node.
JUPYTER_TOKEN=$(head -c 24 /dev/urandom | base64 | tr -d '/+=')
export JUPYTER_TOKEN
chmod go= /dev/stdout
cat <<END
On your own machine, leave this running:
  ssh -N -L 8888:$node:$port LOGIN      # LOGIN: as you log in to the cluster
Then open: http://localhost:8888/lab?token=$JUPYTER_TOKEN
END
# The node's network is the cluster's: whoever has no token gets nothing.
exec ~/envs/jupyter/bin/jupyter lab --no-browser --ip="$node" --port="$port"
