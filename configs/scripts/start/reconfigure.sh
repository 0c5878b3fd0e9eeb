#!/usr/bin/env bash
# Sidecar of slurmctld: when the kubelet swaps the files in /etc/slurm, has slurmctld read them (`scontrol reconfigure`), and says how it went.
# slurmctld takes over a good configuration and keeps its old one when it cannot; jobs run on either way. No answer is tried again.
set -euo pipefail
say() { printf 'reconfigure.sh: %s\n' "$*" >&2; }
trap 'exit 0' TERM INT # PID 1 has no default action for signals

export SLURM_CONF=/etc/slurm/slurm.conf
pause() { sleep "$1" & wait $!; } # so that a signal is heard at once
state() { readlink /etc/slurm/..data || echo /etc/slurm; } # the kubelet swaps this link last, in one step

# A change between slurmctld's start and ours would be missed: so the first version seen is told as well. It costs milliseconds.
applied= told=
while true; do
  now=$(state)
  if [[ $now != "$applied" ]]; then
    if answer=$(timeout 60 scontrol reconfigure 2>&1); then
      say "slurmctld runs with the files of $now"
      applied=$now
    elif [[ -z $answer || $answer == *"Unable to contact"* || $answer == *"timed out"* ]]; then
      [[ $told == "$now unanswered" ]] || say "slurmctld does not answer yet; trying until it does (${answer//$'\n'/; })"
      told="$now unanswered"
    else
      [[ $told == "$now refused" ]] || say "REFUSED: slurmctld keeps its old configuration, the files of $now are no good: ${answer//$'\n'/; }"
      told="$now refused"
      pause 10
    fi
  fi
  pause 1
done
