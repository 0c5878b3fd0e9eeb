#!/usr/bin/env bash
# slurmd for the node that carries the pod's name. Its configuration comes from slurmctld. Runs as root in a privileged container.
# This script is PID 1's only child and starts slurmd again when it ends: the steps of running jobs are processes of their own and live on.
set -euo pipefail
say() { printf 'slurmd.sh: %s\n' "$*" >&2; }
[[ -n ${SLIPWAY_UNDER_INIT:-} ]] || SLIPWAY_UNDER_INIT=1 exec tini -- "${BASH:-bash}" "$0" "$@"

node=$(hostname)
stopping=/run/slipway/stopping # made by slurmd-prestop.sh
own_reason="slipway: pod stopping"
install -d -m 0755 /run/slipway /run/slurm /var/spool/slurmd /var/log/slurm
rm -f "$stopping"

make_devices() { # stand-ins for GPUs, so that Slurm can hand them out and guard them; there is nothing behind them
  local minor
  for ((minor = 0; minor < ${SLIPWAY_SIMULATED_GPUS:-0}; minor++)); do
    [[ -e /dev/nvidia$minor ]] || mknod -m 0666 "/dev/nvidia$minor" c 195 "$minor"
  done
}

prepare_cgroup() { # v2: a group with processes can have no children with controllers, so ours move into a leaf
  local root=/sys/fs/cgroup controller pid
  [[ -f $root/cgroup.controllers ]] || return 0
  [[ $(</proc/self/cgroup) == *"0::/" ]] || return 0
  mkdir -p "$root/slipway"
  while read -r pid; do echo "$pid" >"$root/slipway/cgroup.procs" 2>/dev/null || true; done <"$root/cgroup.procs"
  for controller in $(<"$root/cgroup.controllers"); do echo "+$controller" >"$root/cgroup.subtree_control" 2>/dev/null || true; done
}

shield() { # the kernel must pick a job's task, never its slurmstepd: a pod's score is near 1000, and Slurm lowers it only with CAP_SYS_RESOURCE
  local score
  for score in -999 0; do
    if echo "$score" >/proc/self/oom_score_adj; then return 0; fi 2>/dev/null
  done
}

answers() { timeout 3 bash -c "exec 3<>/dev/tcp/$SLIPWAY_SLURMCTLD/6817" 2>/dev/null; }

settle_past() { # before slurmd: what an earlier pod of this node left behind. Registering would clear the reason of a drain, but not the drain
  local line state reason
  local -x SLURM_CONF_SERVER="$SLIPWAY_SLURMCTLD:6817" # slurmd has not fetched the files for clients yet
  until line=$(timeout 10 scontrol --oneliner show node "$node" 2>/dev/null); do
    ((ended)) && return 0
    ((waited++ % 15)) || say "waiting until slurmctld knows node $node"
    sleep 1 & wait $! || true
  done
  state=$(sed -n 's/.* State=\([^ ]*\) .*/\1/p' <<<"$line")
  reason=$(sed -n 's/.* Reason=\(.*\) \[.*/\1/p' <<<"$line")
  if [[ $state =~ ALLOCATED|MIXED ]]; then # their processes ended with that pod; Slurm would learn it in minutes only, and hold the jobs until then
    timeout 10 scontrol update NodeName="$node" State=DOWN Reason="${reason:-slipway: pod was replaced}"
    say "an earlier pod of this node ended with jobs on it; told slurmctld, which requeues them"
  fi
  if [[ $reason == "$own_reason" ]]; then # no other drain is ours to lift
    timeout 10 scontrol update NodeName="$node" State=UNDRAIN
    say "lifted the drain that the stop of an earlier pod had set"
  fi
}

stay_registered() { # a slurmctld that lost its state takes a CLOUD node for powered down and never dials it: only a new slurmd start registers
  local line
  while [[ ! -e $stopping ]]; do
    sleep 15
    if line=$(timeout 10 scontrol --oneliner show node "$node" 2>/dev/null) && [[ $line == *" State="*POWERED_DOWN* ]]; then
      say "slurmctld takes this node for powered down; registering again (jobs' steps run on)"
      pkill -TERM --parent $$ '^slurmd' || true # Debian calls the process slurmd-wlm
    fi
  done
}

make_devices
prepare_cgroup
shield
ended=0 slurmd_pid=
trap 'ended=1; [[ -z $slurmd_pid ]] || kill -TERM "$slurmd_pid" 2>/dev/null || true' TERM INT

waited=0
until answers && munge --no-input --output /dev/null 2>/dev/null; do
  ((ended)) && exit 0
  ((waited++ % 15)) || say "waiting for munged and for slurmctld at $SLIPWAY_SLURMCTLD:6817"
  sleep 1 & wait $! || true
done

settle_past || say "could not settle what an earlier pod left behind; see: scontrol show node $node"
stay_registered &
while ((!ended)); do
  slurmd -D --conf-server "$SLIPWAY_SLURMCTLD:6817" -N "$node" &
  slurmd_pid=$!
  code=0
  wait "$slurmd_pid" || code=$?
  if ((ended)); then # the first wait ended with the signal; this one with slurmd
    wait "$slurmd_pid" || true
    break
  fi
  slurmd_pid=
  say "slurmd ended with code $code; starting it again in 3 s (jobs' steps run on)"
  sleep 3 & wait $! || true
done
