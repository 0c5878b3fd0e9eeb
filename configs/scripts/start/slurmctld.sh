#!/usr/bin/env bash
# slurmctld as user slurm: configuration from the ConfigMap in /etc/slurm, state in the StateSaveLocation, on the claim.
# Jobs, and nodes that are down or drained, are recovered from the state; partitions and node lines are those of the configuration.
set -euo pipefail
say() { printf 'slurmctld.sh: %s\n' "$*" >&2; }
export SLURM_CONF=/etc/slurm/slurm.conf
state=$(sed -n 's/^StateSaveLocation=//p' "$SLURM_CONF") # a folder on the claim; the claim's top is writable for its group, and slurmctld calls that a hole
as_slurm=()
if [[ $(id -u) == 0 ]]; then # else the pod's fsGroup gave the claim to group slurm
  as_slurm=(setpriv --reuid slurm --regid slurm --clear-groups)
  install -d -o slurm -g slurm -m 0700 "$state"
else
  mkdir -p -m 0700 "$state"
fi
"${as_slurm[@]}" test -r /etc/slipway/jwt/jwt_hs256.key || say "user slurm cannot read /etc/slipway/jwt/jwt_hs256.key: mount the Secret with fsGroup 64030 and mode 0440"

tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  ((tries++ % 10)) || say "waiting for munged"
  sleep 0.5
done
exec "${as_slurm[@]}" slurmctld -D
