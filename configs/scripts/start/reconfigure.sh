#!/usr/bin/env bash
# Sidecar of slurmctld: when the kubelet swaps the files in /etc/slurm, has slurmctld read them (`scontrol reconfigure`), and says how it went.
# slurmctld takes over a good configuration and keeps its old one when it cannot; jobs run on either way. No answer is tried again.
set -euo pipefail
say() { printf 'reconfigure.sh: %s\n' "$*" >&2; }
trap 'exit 0' TERM INT # PID 1 has no default action for signals

export SLURM_CONF=/etc/slurm/slurm.conf
state() { readlink /etc/slurm/..data || true; } # the kubelet swaps this link last, in one step

# A change between slurmctld's start and ours would be missed: so the first version seen is told as well. It costs milliseconds.
applied=
while true; do
  now=$(state)
  if [[ $now != "$applied" ]]; then
    if answer=$(timeout 60 scontrol reconfigure 2>&1); then
      say "slurmctld runs with the files of ${now:-/etc/slurm}"
      applied=$now
      refused=
    elif ! timeout 10 scontrol ping >/dev/null 2>&1; then
      say "slurmctld does not answer; trying again (${answer//$'\n'/; })"
      sleep 2 & wait $!
    else
      [[ ${refused:-} == "$now" ]] || say "slurmctld refused the files of ${now:-/etc/slurm} and keeps its old ones: ${answer//$'\n'/; }"
      refused=$now
      sleep 10 & wait $!
    fi
  fi
  sleep 1 & wait $!
done
