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
# Slurm's files know a backslash, and a # after one; nothing makes a quote or a blank part of a value.
[[ $password != *[\"[:space:][:cntrl:]]* ]] || { say "slurmdbd takes no password with a double quote or a blank in it: choose another"; exit 1; }
escaped=${password//\\/\\\\}
escaped=${escaped//#/\\#}
umask 077
{
  cat /etc/slipway/slurmdbd/slurmdbd.conf
  printf '\nStoragePass=%s\n' "$escaped"
} >/etc/slurm/slurmdbd.conf
[[ $(id -u) != 0 ]] || chown slurm:slurm /etc/slurm/slurmdbd.conf
umask 022
[[ -d /run/slurm ]] || install -d "${owner[@]}" /run/slurm # for the pid file

tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  ((tries++ % 10)) || say "waiting for munged"
  sleep 0.5 & wait $!
done
(cd /opt/slipway && exec python3 -EsSB -m programs.database.run /etc/slurm/mariadb-client.cnf) & wait $!
exec "${as_slurm[@]}" slurmdbd -D
