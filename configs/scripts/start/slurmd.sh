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

answers() { timeout 3 bash -c "exec 3<>/dev/tcp/$SLIPWAY_SLURMCTLD/6817" 2>/dev/null; }

read_node() { # sets state and reason to what slurmctld has for this node
  local line
  line=$(timeout 10 scontrol --oneliner show node "$node" 2>/dev/null) || return 1
  [[ $line =~ " State="([^ ]+) ]] || return 1
  state=${BASH_REMATCH[1]} reason=
  if [[ $line =~ " Reason="(.*)" ["[^][@\ ]+@[-0-9T:]+"]" ]]; then reason=${BASH_REMATCH[1]}; fi # text [who@when]
}

is_ours() { [[ $1 == "$own_reason" || $1 == "slipway: nodeset "* ]]; } # all other drains, of health checks too, are for others to lift

settle_past() { # before slurmd: what an earlier pod of this node left behind
  local -x SLURM_CONF_SERVER="$SLIPWAY_SLURMCTLD:6817" # slurmd has not fetched the files for clients yet
  until read_node; do
    ((ended)) && return 0
    ((waited++ % 15)) || say "waiting until slurmctld knows node $node"
    sleep 1 & wait $! || true
  done
  # A job on a node that is powered down or powering up has not begun: it waits for this very pod.
  if [[ $state =~ ALLOCATED|MIXED && $state != *POWER* ]]; then # their processes ended with that pod; Slurm would learn it in minutes only, and hold the jobs until then
    timeout 10 scontrol update NodeName="$node" State=DOWN Reason="${reason:-slipway: pod was replaced}"
    say "an earlier pod of this node ended with jobs on it; told slurmctld, which requeues them"
  fi
  if is_ours "$reason" && [[ $state == *DRAIN* ]]; then
    timeout 10 scontrol update NodeName="$node" State=UNDRAIN
    say "lifted the drain of Slipway's own: $reason"
  elif [[ $state == *DRAIN* && $state == *POWER* ]]; then
    kept_reason=$reason # registering from power saving keeps such a drain and clears its reason (26.05.5)
  fi
}

give_back_reason() { # of a drain that is not ours, in the same words
  [[ -n $kept_reason ]] || return 0
  if [[ $state == *DRAIN* && -z $reason ]]; then
    timeout 10 scontrol update NodeName="$node" State=DRAIN Reason="$kept_reason" || return 0
    say "registering cleared the reason of the drain; wrote it back: $kept_reason"
  fi
  kept_reason=
}

is_unheard() { # slurmctld waits for a start of slurmd: it asked for the node later than our slurmd started, or it lost its state
  [[ $state == *POWERING_UP* ]] || [[ $state == *POWERED_DOWN* && -z ${SLIPWAY_ELASTIC:-} ]] # an elastic node that is powered down is the controller's to remove
}

stay_registered() { # slurmctld never dials a CLOUD node that it takes for powered down or powering up: only a new slurmd start registers
  local pause=1 since=$SECONDS
  while [[ ! -e $stopping ]]; do
    sleep "$pause"
    pause=$((pause < 8 ? pause * 2 : 15))
    read_node || continue
    if [[ $state != *POWER* ]]; then
      give_back_reason
    elif is_unheard && ((SECONDS - since >= 15)) && [[ ! -e $stopping ]]; then
      say "slurmctld has not heard this node (state $state); registering again (jobs' steps run on)"
      pkill -TERM --parent $$ '^slurmd' || true # Debian calls the process slurmd-wlm
      since=$SECONDS
    fi
  done
}

keep_sshd() { # its end is no one else's: sessions are processes of their own, and so are jobs
  while true; do
    "${0%/*}/node-sshd.sh" || say "sshd ended with code $?; starting it again in 3 s (sessions and jobs run on)"
    sleep 3
  done
}

make_devices
if [[ -e /etc/slipway/root/root.conf ]]; then # jobs see another root than this pod's
  "${0%/*}/share-driver.sh" || say "jobs will not find the driver's files; see the lines above"
fi
prepare_cgroup
shield
ended=0 slurmd_pid= state= reason= kept_reason=
trap 'ended=1; [[ -z $slurmd_pid ]] || kill -TERM "$slurmd_pid" 2>/dev/null || true' TERM INT

waited=0
until answers && munge --no-input --output /dev/null 2>/dev/null; do
  ((ended)) && exit 0
  ((waited++ % 15)) || say "waiting for munged and for slurmctld at $SLIPWAY_SLURMCTLD:6817"
  sleep 1 & wait $! || true
done

[[ ! -e /etc/slipway/node-host-keys ]] || keep_sshd &
settle_past || say "could not settle what an earlier pod left behind; see: scontrol show node $node"
stay_registered &
while ((!ended)); do
  # -b: the node has just booted. slurmctld, once it asked for a node, takes no registration of an older boot, and a pod shows the machine's.
  # Elsewhere not: with returnToService below 2 a new boot would be an unexpected one, and the node down.
  booted=()
  if [[ $state == *POWER* ]]; then booted=(-b); fi
  slurmd -D "${booted[@]}" --conf-server "$SLIPWAY_SLURMCTLD:6817" -N "$node" &
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
  read_node || true
done
