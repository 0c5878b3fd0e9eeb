#!/usr/bin/env bash
# Before slurmctld starts: when its disk has no state and there are backups, takes one, as backup.restoreFrom says, or waits for that word. An empty
# slurmctld would end every job that runs: none of them is known to it. State that is there is never touched; half a copy never counts.
set -euo pipefail
say() { printf 'state-restore.sh: %s\n' "$*" >&2; }
trap 'exit 143' TERM INT
# shellcheck source=backup-files.sh
. "$(dirname "$0")/backup-files.sh"
state=/var/spool/slurmctld/state
folder=/backup/$SLIPWAY_CLUSTER/state
ending=.tar.zst
umask 077

present=
if [[ -e $state ]]; then # what cannot be read is not empty
  present=$(find "$state" -maxdepth 1 -type f -print -quit) || { say "FAILED: $state cannot be read: whether slurmctld's state is there is unknown"; exit 1; }
fi
if [[ -n $present ]]; then
  say "slurmctld's state is there; nothing to restore"
  exit 0
fi
choose_backup "$folder" "$ending" "slurmctld's disk"
[[ -n $chosen ]] || exit 0
rm -rf "$state.partial"
install -d -m 0700 "$state.partial"
zstd --quiet --decompress --stdout "$chosen" | tar --extract --directory="$state.partial" ||
  { say "FAILED: $chosen is damaged. Set backup.restoreFrom to the time of an older one: $(list_backups "$folder" "$ending" | tr '\n' ' ')"; exit 1; }
sync --file-system "$state.partial"
[[ ! -d $state ]] || rmdir "$state" || mv -T "$state" "$state.before-restore.$(name_now)"
mv -T "$state.partial" "$state"
sync --file-system "$state"
say "restored $(basename "$chosen" "$ending"). Jobs submitted after that time are unknown to it, and those of them that run are ended"
