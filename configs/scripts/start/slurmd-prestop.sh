#!/usr/bin/env bash
# preStop hook of a worker: drains the node and returns when no job can be running on it, or after SLIPWAY_DRAIN_GRACE_S.
# Only a reading of slurmctld made after the drain counts; while it does not answer, the node counts as busy. A node that power saving has put
# off has no job and gets none until a new slurmd registers: it is left at once, without a drain, which would keep Slurm from waking it.
set -euo pipefail
say() { printf 'slurmd-prestop.sh: %s\n' "$*" >/proc/1/fd/2 2>/dev/null || printf 'slurmd-prestop.sh: %s\n' "$*" >&2; }

node=$(hostname)
own_reason="slipway: pod stopping"
deadline=$((SECONDS + ${SLIPWAY_DRAIN_GRACE_S:-3600}))
touch /run/slipway/stopping

last=
while ((SECONDS < deadline)); do
  if line=$(timeout 10 scontrol --oneliner show node "$node" 2>&1); then
    state=
    if [[ $line =~ " State="([^ ]+) ]]; then state=${BASH_REMATCH[1]}; fi # the first one; others may stand in comments and reasons
    if [[ $state =~ POWERING_DOWN|POWERED_DOWN && ! $state =~ ALLOCATED|MIXED|COMPLETING ]]; then
      say "Slurm has put $node off (state $state)"
      exit 0
    elif [[ $state != *DRAIN* ]]; then # a drain that someone else set, and its reason, stay as they are
      timeout 10 scontrol update NodeName="$node" State=DRAIN Reason="$own_reason" || true
      now="draining (state $state)"
    elif [[ $state =~ ALLOCATED|MIXED|COMPLETING|UNDRAIN ]]; then
      now="waiting for jobs to end (state $state)"
    else
      say "no job is left on $node (state $state)"
      exit 0
    fi
  elif [[ $line == *"not found"* ]] && ! pgrep -f '^slurmstepd: \[' >/dev/null; then
    say "slurmctld knows no node $node, and no step runs here"
    exit 0
  else
    now="slurmctld does not answer, so the node counts as busy: ${line//$'\n'/; }"
  fi
  [[ $now == "$last" ]] || say "$now"
  last=$now
  [[ $now == draining* ]] || sleep 1
done
say "gave up after ${SLIPWAY_DRAIN_GRACE_S:-3600} s: $last"
