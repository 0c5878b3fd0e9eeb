#!/usr/bin/env bash
# Before the accounting database is used: when it is empty and there are backups, fills it from one, as backup.restoreFrom says, or waits for that
# word. A database with records is never touched. If it is killed half-way, the next start begins again: half a restore never counts.
# With SLIPWAY_MARIADB_HOST: over the network, before slurmdbd starts. Without: the data folder of the cluster's own MariaDB, before that starts.
set -euo pipefail
say() { printf 'database-restore.sh: %s\n' "$*" >&2; }
trap 'exit 143' TERM INT
# shellcheck source=backup-files.sh
. "$(dirname "$0")/backup-files.sh"
folder=/backup/$SLIPWAY_CLUSTER/database
ending=.sql.zst

fill() { # CLIENT-COMMAND..: from the chosen backup. Routines become those of the user that imports: their maker's name may be unknown here
  say "restoring $chosen ($(du -h --apparent-size "$chosen" | cut -f1))"
  zstd --quiet --test "$chosen" || { say "FAILED: $chosen is damaged. Set backup.restoreFrom to the time of an older one: $(list_backups "$folder" "$ending" | tr '\n' ' ')"; return 1; }
  zstd --quiet --decompress --stdout "$chosen" | sed -E 's/^CREATE DEFINER=`[^`]*`@`[^`]*` /CREATE /' | "$@" ||
    { say "FAILED: the restore of $chosen broke off; it starts over"; return 1; }
}

restore_over_network() {
  local client=/tmp/client.cnf marker=slipway_restore tables name
  # shellcheck source=database-client.sh
  . "$(dirname "$0")/database-client.sh"
  write_client "$client"
  query() { mariadb --defaults-file="$client" --skip-column-names --batch --execute "$1" "$database"; }
  wait_for_database "$client"
  tables=$(query 'SHOW TABLES')
  if [[ -n $tables && $'\n'$tables$'\n' != *$'\n'$marker$'\n'* ]]; then
    say "the database at $database_host has its tables; nothing to restore"
    return 0
  fi
  choose_backup "$folder" "$ending" "the database at $database_host"
  [[ -n $chosen || -n $tables ]] || return 0
  query "CREATE TABLE IF NOT EXISTS $marker (id int)" # while it is there, all else is half a restore
  for name in $tables; do
    [[ $name == "$marker" ]] || query "SET FOREIGN_KEY_CHECKS=0; DROP TABLE \`$name\`"
  done
  if [[ -n $chosen ]]; then
    fill mariadb --defaults-file="$client" "$database"
  fi
  query "DROP TABLE $marker"
  [[ -z $chosen ]] || say "restored $(basename "$chosen" "$ending") into the database at $database_host in $SECONDS s"
}

restore_data_folder() {
  local run=/run/mysqld data=/var/lib/mysql/data socket=/run/mysqld/restore.sock server tries=0
  [[ ! -d $data ]] || { say "the data folder is there; nothing to restore"; return 0; }
  choose_backup "$folder" "$ending" "the database"
  [[ -n $chosen ]] || return 0 # mariadb.sh makes an empty one
  rm -rf "$data.partial"
  mariadb-install-db --no-defaults --datadir="$data.partial" --skip-test-db --skip-name-resolve --auth-root-socket-user=mysql >&2
  # Nobody else reaches this server; a machine that fails means a fresh start, so nothing is flushed before the end.
  mariadbd --no-defaults --datadir="$data.partial" --socket="$socket" --pid-file="$run/restore.pid" --skip-networking --character-set-server=utf8mb4 \
    --innodb-buffer-pool-size="${SLIPWAY_MARIADB_BUFFER_POOL:-2G}" --innodb-log-file-size=64M --innodb-flush-log-at-trx-commit=0 --max-allowed-packet=16M --performance-schema=OFF &
  server=$!
  local -a client=(mariadb --no-defaults --socket="$socket" --user=mysql --max-allowed-packet=16M)
  until "${client[@]}" --execute 'CREATE DATABASE IF NOT EXISTS slurm_acct_db' 2>/dev/null; do
    kill -0 "$server" || { say "FAILED: the server for the restore ended"; return 1; }
    ((tries++ < 600)) || { say "FAILED: the server for the restore does not answer"; return 1; }
    sleep 0.2 & wait $!
  done
  fill "${client[@]}" slurm_acct_db || { kill "$server"; wait "$server" || true; return 1; }
  "${client[@]}" --execute SHUTDOWN
  wait "$server"
  sync --file-system "$data.partial"
  mv -T "$data.partial" "$data"
  sync --file-system "$data"
  say "restored $(basename "$chosen" "$ending") in $SECONDS s"
}

if [[ -n ${SLIPWAY_MARIADB_HOST:-} ]]; then restore_over_network; else restore_data_folder; fi
