#!/usr/bin/env bash
# slurmctld as user slurm: configuration from the ConfigMap in /etc/slurm, state on the claim in /var/spool/slurmctld.
# Jobs, and nodes that are down or drained, are recovered from the state; partitions and node lines are those of the configuration.
set -euo pipefail
say() { printf 'slurmctld.sh: %s\n' "$*" >&2; }
as_slurm=()
state=/var/spool/slurmctld
if [[ $(id -u) == 0 ]]; then # else the pod's fsGroup gave the claim to group slurm
  as_slurm=(setpriv --reuid slurm --regid slurm --clear-groups)
  [[ $(stat -c %U "$state") == slurm ]] || chown -R slurm:slurm "$state"
fi
export SLURM_CONF=/etc/slurm/slurm.conf
"${as_slurm[@]}" test -r /etc/slipway/jwt/jwt_hs256.key || say "user slurm cannot read /etc/slipway/jwt/jwt_hs256.key: mount the Secret with fsGroup 64030 and mode 0440"

tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  ((tries++ % 10)) || say "waiting for munged"
  sleep 0.5
done
exec "${as_slurm[@]}" slurmctld -D
