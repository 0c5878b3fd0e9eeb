#!/usr/bin/env bash
# Sidecar of slurmctld: when the kubelet swaps the files in /etc/slurm, has slurmctld read them (`scontrol reconfigure`), and says how it went.
# slurmctld takes over a good configuration and keeps its old one when it cannot; jobs run on either way.
set -euo pipefail
say() { printf 'reconfigure.sh: %s\n' "$*" >&2; }
trap 'exit 0' TERM INT # PID 1 has no default action for signals

export SLURM_CONF=/etc/slurm/slurm.conf
pause() { sleep "$1" & wait $!; } # so that a signal is heard at once
state() { readlink /etc/slurm/..data || echo /etc/slurm; } # the kubelet swaps this link last, in one step

# A change between slurmctld's start and ours would be missed: so the first version seen is told as well. It costs milliseconds.
applied= told= refused= again_at=0
while true; do
  now=$(state)
  if [[ $now != "$applied" ]] && [[ $now != "$refused" || $SECONDS -ge $again_at ]]; then
    if answer=$(timeout 60 scontrol reconfigure 2>&1); then
      say "slurmctld runs with the files of $now"
      applied=$now
    elif [[ -z $answer || $answer == *"Unable to contact"* || $answer == *"timed out"* ]]; then
      [[ $told == "$now" ]] || say "slurmctld does not answer yet; trying until it does (${answer//$'\n'/; })"
      told=$now
    else
      # Its own log says which line. Once more each minute, should the fault be elsewhere (a name that does not resolve yet).
      [[ $refused == "$now" ]] || say "REFUSED: slurmctld keeps its old configuration, the files of $now are no good: ${answer//$'\n'/; }"
      refused=$now again_at=$((SECONDS + 60))
    fi
  fi
  pause 1
done
