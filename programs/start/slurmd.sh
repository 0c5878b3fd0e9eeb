#!/usr/bin/env bash
# Prepares a worker's container for jobs, devices and cgroups, and becomes the program that runs slurmd: PID 1's only child. Runs as root in a
# privileged container.
set -euo pipefail
say() { printf 'slurmd.sh: %s\n' "$*" >&2; }
[[ $$ != 1 ]] || exec tini -- "${BASH:-bash}" "$0" "$@" # workers of a node set have it in their command already

install -d -m 0755 /run/slipway /run/slurm /var/spool/slurmd /var/log/slurm
rm -f /run/slipway/stopping # made by the stop hook

make_devices() { # stand-ins for GPUs, so that Slurm can hand them out and guard them; there is nothing behind them
  local minor
  for ((minor = 0; minor < ${SLIPWAY_SIMULATED_GPUS:-0}; minor++)); do
    [[ -e /dev/nvidia$minor ]] || mknod -m 0666 "/dev/nvidia$minor" c 195 "$minor"
  done
}

hide_gpus() { # of a node set without GPUs: Slurm guards the devices that gres.conf names, and a privileged pod has all that its machine has
  local each devices=()
  [[ ${SLIPWAY_GPUS:-} == 0 ]] || return 0
  for each in /dev/nvidia* /dev/dri /dev/kfd; do # the pattern itself where nothing matches
    [[ ! -e $each ]] || devices+=("$each")
  done
  ((${#devices[@]})) || return 0
  if [[ $(findmnt --noheadings --output FSTYPE --mountpoint /dev) != tmpfs ]]; then
    say "the pod has no /dev of its own, so ${devices[*]} would be open to jobs: take a machine without GPUs for this node set"
    exit 1
  fi
  rm -rf "${devices[@]}"
}

prepare_cgroup() { # v2: a group with processes has no children with controllers, so ours move into a leaf. Slurm puts jobs beside PID 1's group:
  # with the leaf, inside the container. The path is / in a cgroup namespace; privileged pods of containerd and CRI-O share the machine's.
  local root=/sys/fs/cgroup own controller pid tries
  [[ -f $root/cgroup.controllers ]] || return 0
  own=$(</proc/self/cgroup)
  own=$root${own#0::}
  own=${own%/}
  mkdir -p "$own/slipway"
  for ((tries = 0; tries < 20; tries++)); do # the list is read whole before the first move, and again: an exec may have come in between
    local -a pids=()
    mapfile -t pids <"$own/cgroup.procs"
    ((${#pids[@]})) || break
    for pid in "${pids[@]}"; do echo "$pid" >"$own/slipway/cgroup.procs" 2>/dev/null || true; done
  done
  for controller in $(<"$own/cgroup.controllers"); do echo "+$controller" >"$own/cgroup.subtree_control" 2>/dev/null || true; done
}

shield() { # the kernel must pick a job's task, never its slurmstepd: a pod's score is near 1000, and Slurm lowers it only with CAP_SYS_RESOURCE
  local score
  for score in -999 0; do
    if echo "$score" >/proc/self/oom_score_adj; then return 0; fi 2>/dev/null
  done
}

raise_limits() { # jobs get slurmd's limit of locked memory, and RDMA registers what a job computes with
  if ! ulimit -l unlimited 2>/dev/null; then
    say "jobs may lock no more than $(ulimit -Hl) KiB of memory each, and RDMA may need more: the container runtime has this limit, and the pod no CAP_SYS_RESOURCE to raise it"
  fi
}

make_devices
hide_gpus
if [[ ! -e /usr/lib/slipway/su ]]; then # with Debian's own, a program of a user's could run outside of every job
  say "FAILED: this image is older than Slipway's scripts: build and push it again"
  exit 1
fi
mount --bind /usr/lib/slipway/su /usr/bin/su # slurmd runs it for jobs that have no cgroup yet
if [[ -e /etc/slipway/root/root.conf ]]; then # jobs see another root than this pod's
  "${0%/*}/share-driver.sh" || say "jobs will not find the driver's files; see the lines above"
fi
prepare_cgroup
shield
raise_limits

cd /opt/slipway
exec python3 -EsSB -m programs.worker.run
