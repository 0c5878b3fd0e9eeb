#!/usr/bin/env bash
# slurmdbd as user slurm: the ConfigMap's slurmdbd.conf and the database password of the Secret, in one file that only slurm can read.
set -euo pipefail
say() { printf 'slurmdbd.sh: %s\n' "$*" >&2; }
as_slurm=() owner=()
if [[ $(id -u) == 0 ]]; then
  as_slurm=(setpriv --reuid slurm --regid slurm --clear-groups)
  owner=(-o slurm -g slurm)
fi
trap 'exit 0' TERM INT # until the daemon takes over

password=$(</etc/slipway/mariadb/password)
umask 077
{
  cat /etc/slipway/slurmdbd/slurmdbd.conf
  printf '\nStoragePass=%s\n' "$password"
} >/etc/slurm/slurmdbd.conf
client=/etc/slurm/mariadb-client.cnf
printf '[client]\nhost=%s\nuser=slurm\npassword="%s"\nconnect-timeout=3\n' "$SLIPWAY_MARIADB_HOST" "$password" >"$client"
[[ $(id -u) != 0 ]] || chown slurm:slurm /etc/slurm/slurmdbd.conf
umask 022
[[ -d /run/slurm ]] || install -d "${owner[@]}" /run/slurm # for the pid file

tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  ((tries++ % 10)) || say "waiting for munged"
  sleep 0.5 & wait $!
done
tries=0
until answer=$(mariadb --defaults-file="$client" --execute 'SELECT 1' slurm_acct_db 2>&1); do
  ((tries++ % 10)) || say "waiting for the database at $SLIPWAY_MARIADB_HOST: $answer"
  sleep 1 & wait $!
done
exec "${as_slurm[@]}" slurmdbd -D
