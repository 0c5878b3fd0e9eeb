#!/usr/bin/env bash
# Ids of the daemons' users, before packages bring their own.
set -euo pipefail
# Ids before packages: Debian's own scripts keep an account that exists. Files on claims belong to these numbers, so they never change.
account() { # name id home
  groupadd --system --gid "$2" "$1"
  useradd --system --uid "$2" --gid "$2" --home-dir "$3" --no-create-home --shell /usr/sbin/nologin "$1"
}
account slurm 64030 /var/lib/slurm
account munge 401 /var/lib/munge
account slurmrestd 402 /nonexistent
account mysql 403 /var/lib/mysql
account slipway-identity 405 /nonexistent
