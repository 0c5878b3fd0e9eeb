#!/usr/bin/env bash
# slurmctld as user slurm: configuration from the ConfigMap in /etc/slurm, state in the StateSaveLocation, on the claim.
# Jobs, and nodes that are down or drained, are recovered from the state; partitions and node lines are those of the configuration.
# slurmctld runs as a daemon that this script watches, not with -D: only so does a reconfigure try the new files in a process of its own,
# and keep the old process when they are no good. With -D it takes its own place, and ends with them (seen with 26.05.5).
set -euo pipefail
say() { printf 'slurmctld.sh: %s\n' "$*" >&2; }
setting() { sed -n "s/^$1=//p" /etc/slurm/slurm.conf | tail -n 1; }

export SLURM_CONF=/etc/slurm/slurm.conf
state=$(setting StateSaveLocation) # a folder on the claim; the claim's top is writable for its group, and slurmctld calls that a hole
run=/run/slurm
as_slurm=() owner=()
if [[ $(id -u) == 0 ]]; then # else the pod's fsGroup gave the claim to group slurm
  as_slurm=(setpriv --reuid slurm --regid slurm --clear-groups)
  owner=(-o slurm -g slurm)
fi
install -d "${owner[@]}" -m 0700 "$state"
[[ -d $run ]] || install -d "${owner[@]}" "$run"
"${as_slurm[@]}" test -r /etc/slipway/jwt/jwt_hs256.key || say "user slurm cannot read /etc/slipway/jwt/jwt_hs256.key: mount the Secret with fsGroup 64030 and mode 0440"

stopping=
trap 'stopping=1' TERM INT
pause() { sleep "$1" & wait $! || true; } # so that a signal is heard at once

tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  [[ -z $stopping ]] || exit 0
  ((tries++ % 10)) || say "waiting for munged"
  pause 0.5
done

main_process() { pgrep --parent $$ '^slurmctld'; } # a reconfigure changes it; the one that gives way removes the pid file

# A daemon's own standard error is /dev/null; this script's is the container's log. The link is for slurmctld's wish to work where its log is.
ln -sf "/proc/$$/fd/2" "$run/slurmctld.log"
"${as_slurm[@]}" slurmctld -L "$run/slurmctld.log"
missed=0
while ((missed < 10)); do
  if pid=$(main_process); then
    missed=0
    if [[ $stopping == 1 ]]; then
      kill -TERM "$pid" || true # it saves its state, then ends
      stopping=told
    fi
  elif [[ -n $stopping ]]; then
    exit 0
  else
    missed=$((missed + 1))
  fi
  pause 0.5
done
say "slurmctld ended"
exit 1
