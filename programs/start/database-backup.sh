#!/usr/bin/env bash
# Dumps the accounting database into the backup volume, by the CronJob. The dump gets its name when it is whole, checked and on disk; only then do
# older ones beyond SLIPWAY_BACKUP_KEEP go. Whatever fails leaves the older ones and ends with code 1.
set -euo pipefail
say() { printf 'database-backup.sh: %s\n' "$*" >&2; }
here=$(dirname "$0")
# shellcheck source=backup-files.sh
. "$here/backup-files.sh"
# shellcheck source=database-client.sh
. "$here/database-client.sh"
folder=/backup/$SLIPWAY_CLUSTER/database
ending=.sql.zst
umask 077

client=/tmp/client.cnf
write_client "$client"
begin_backup "$folder"
list_tables() { mariadb --defaults-file="$client" --skip-column-names --batch --execute 'SHOW TABLES' "$database"; }
refuse_half() { # TABLES: database-restore.sh has its marker among them as long as it fills an external database
  ! grep -qx slipway_restore <<<"$1" || { say "FAILED: the database at $database_host is being restored; the older backups stay as they are"; exit 1; }
}
found=$(list_tables) || { say "FAILED: the database at $database_host does not answer"; exit 1; }
refuse_half "$found"
tables=$(grep -c . <<<"$found" || true)
# An empty one is the loss that backups are for; it must not take the place of a good one.
((tables)) || { say "FAILED: the database at $database_host has no tables; the older backups stay as they are"; exit 1; }

name=$(name_now)
partial=$folder/.partial-$name
trap 'rm -f "$partial"' EXIT
began=$SECONDS
# One transaction: a state of one moment, and slurmdbd goes on writing. Routines are slurmdbd's own; it makes them at its starts only.
if ! mariadb-dump --defaults-file="$client" --single-transaction --quick --routines --no-tablespaces "$database" | zstd --quiet -T1 >"$partial"; then
  say "FAILED: the dump of $database at $database_host broke off; the older backups stay as they are ($(df -h --output=avail "$folder" | tail -n 1 | tr -d ' ') are free)"
  exit 1
fi
# zstd checks its sums; mariadb-dump's last line says that it came to its end.
last=$(zstd --quiet --decompress --stdout "$partial" | tail -n 1) || last=unreadable
[[ $last == "-- Dump completed"* ]] || { say "FAILED: the dump is not whole; the older backups stay as they are"; exit 1; }
found=$(list_tables) || { say "FAILED: the database at $database_host does not answer any more"; exit 1; }
refuse_half "$found"
publish "$partial" "$folder/$name$ending" || { say "FAILED: the dump could not be written to disk; the older backups stay as they are"; exit 1; }
prune "$folder" "$ending" "$SLIPWAY_BACKUP_KEEP"
say "$name: $tables tables, $(du -h --apparent-size "$folder/$name$ending" | cut -f1) in $((SECONDS - began)) s; there are $(list_backups "$folder" "$ending" | wc -l)"

# What an administrator has to see fails this Job, whose own backup is made all the same.
fault=0
future_fault "$folder" "$ending" || fault=1
# slurmctld's pod backs up its own state. A failure there is seen in its log only, so it fails this Job too.
if [[ -n ${SLIPWAY_STATE_BACKUP_S:-} ]]; then
  state=/backup/$SLIPWAY_CLUSTER/state
  future_fault "$state" .tar.zst || fault=1
  oldest=$((SLIPWAY_STATE_BACKUP_S * 3))
  age=$(newest_age "$state" .tar.zst) || fault=1
  if ((${age:-$((oldest + 1))} > oldest)); then
    say "FAILED: slurmctld's state has no backup younger than $oldest s. Its pod says why: container state-backup"
    fault=1
  fi
fi
exit "$fault"
