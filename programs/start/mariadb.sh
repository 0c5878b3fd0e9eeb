#!/usr/bin/env bash
# MariaDB for slurmdbd, as user mysql, with its data on the claim in /var/lib/mysql.
# The data folder is prepared under another name and renamed when complete, so a killed start leaves no half-made one.
set -euo pipefail
say() { printf 'mariadb.sh: %s\n' "$*" >&2; }
run=/run/mysqld
data=/var/lib/mysql/data # a folder of its own: a fresh file system has lost+found at its top

if [[ ! -d $data ]]; then
  say "making the data folder"
  rm -rf "$data.partial"
  mariadb-install-db --no-defaults --datadir="$data.partial" --skip-test-db --skip-name-resolve --auth-root-socket-user=mysql >&2
  sync --file-system "$data.partial"
  mv -T "$data.partial" "$data"
  sync --file-system "$data"
fi

# Each start sets the account's password to that of the Secret.
password=$(</etc/slipway/mariadb/password)
password=${password//\\/\\\\}
password=${password//\'/\\\'}
(
  umask 077
  cat >"$run/accounts.sql" <<SQL
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS 'slurm'@'%' IDENTIFIED BY '$password';
ALTER USER 'slurm'@'%' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON slurm_acct_db.* TO 'slurm'@'%';
SQL
)

# Slurm's accounting guide asks for the lock wait, the packet size, and a log that holds long transactions; slurmdbd refuses snapshot isolation and
# calls a smaller buffer pool too small; it takes memory only as the tables grow. The other options keep memory small. Any pod may connect: a client
# has five seconds to log in, and 100 idle connections of a user's process must not keep slurmdbd out.
exec mariadbd --no-defaults \
  --datadir="$data" --socket="$run/mysqld.sock" --pid-file="$run/mysqld.pid" --init-file="$run/accounts.sql" \
  --bind-address=0.0.0.0 --port=3306 --skip-name-resolve --character-set-server=utf8mb4 \
  --innodb-buffer-pool-size="${SLIPWAY_MARIADB_BUFFER_POOL:-2G}" --innodb-log-file-size=64M --innodb-lock-wait-timeout=900 --innodb-snapshot-isolation=OFF \
  --max-allowed-packet=16M --performance-schema=OFF --max-connections=1000 --connect-timeout=5
