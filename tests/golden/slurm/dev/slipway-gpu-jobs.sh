#!/bin/sh
# Which job has which GPU, rendered by Slipway for cluster.monitoring; do not edit. slurmd runs this as root, as Prolog and Epilog: a file for
# each GPU, named by its index, whose line is the job. DCGM's exporter reads them (DCGM_HPC_JOB_MAPPING_DIR). It never fails a job.
folder=/run/slurm/gpu-jobs
mkdir=/bin/mkdir rm=/bin/rm # slurmd gives it no PATH
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
IFS=,
for gpu in $SLURM_JOB_GPUS; do
  case "$gpu" in *[!0-9]*) continue ;; esac
  if [ "$SLURM_SCRIPT_CONTEXT" = prolog_slurmd ]; then
    $mkdir -p "$folder" && echo "$SLURM_JOB_ID" >"$folder/$gpu"
  elif read -r job <"$folder/$gpu" && [ "$job" = "$SLURM_JOB_ID" ]; then
    $rm -f "$folder/$gpu"
  fi
done 2>/dev/null
exit 0
