#!/usr/bin/env bash
# slurmdbd as user slurm, once its files are written, and the database and munged answer.
set -euo pipefail
say() { printf 'slurmdbd.sh: %s\n' "$*" >&2; }
as_slurm=() owner=()
if [[ $(id -u) == 0 ]]; then
  as_slurm=(setpriv --reuid slurm --regid slurm --clear-groups)
  owner=(-o slurm -g slurm)
fi
trap 'exit 0' TERM INT # until the daemon takes over

[[ -d /run/slurm ]] || install -d "${owner[@]}" /run/slurm # for the pid file
(cd /opt/slipway && exec python3 -EsSB -m programs.database.run /etc/slurm/mariadb-client.cnf) & wait $!
tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  ((tries++ % 10)) || say "waiting for munged"
  sleep 0.5 & wait $!
done
exec "${as_slurm[@]}" slurmdbd -D
