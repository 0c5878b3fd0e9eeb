#!/usr/bin/env bash
# Sidecar of slurmctld: a copy of its state on the backup volume every SLIPWAY_STATE_BACKUP_S seconds, because its disk can be mounted here only.
# slurmctld writes each file anew and renames it, so a copy of whole files is as good as what a crash leaves. Failing, it says so and tries again in
# a minute; it never ends by itself, for slurmctld's pod would count as broken. The Job of the database's backup fails when these grow old.
set -euo pipefail
say() { printf 'state-backup.sh: %s\n' "$*" >&2; }
trap 'exit 0' TERM INT
# shellcheck source=backup-files.sh
. "$(dirname "$0")/backup-files.sh"
state=/var/spool/slurmctld/state
folder=/backup/$SLIPWAY_CLUSTER/state
ending=.tar.zst
umask 077

back_up() ( # in a process of its own, which the lock ends with
  local name partial files unread code=0
  begin_backup "$folder" || return 1
  name=$(name_now)
  partial=$folder/.partial-$name
  # The list of jobs first, then their scripts: a script without a job does no harm, a job without its script is lost.
  {
    echo job_state
    cd "$state" && find . -mindepth 1 ! -path ./job_state -printf '%P\n'
  } | LC_ALL=C tar --create --directory="$state" --no-recursion --files-from=- --ignore-failed-read --warning=no-file-changed 2>"$partial.said" |
    zstd --quiet -T1 >"$partial" || code=$?
  # A name may be gone by now; a file that is there and cannot be read would be missing from the backup.
  unread=$(grep -v -e ': No such file or directory$' -e ': File removed before we read it$' -e ': file changed as we read it$' -e ': socket ignored$' "$partial.said" | head -n 3) || true
  rm -f "$partial.said"
  if [[ -n $unread ]]; then
    say "FAILED: not all of slurmctld's state can be read: ${unread//$'\n'/; }"
    code=2
  fi
  files=$(zstd --quiet --decompress --stdout "$partial" | tar --list 2>/dev/null | grep -cxE 'job_state|node_state|part_state|clustername') || files=0
  # Between slurmctld's unlink and link a name is missing for a moment; and tar's own 1 is only a file that went while it read.
  if ((files < 4 || code > 1)) || ! publish "$partial" "$folder/$name$ending"; then
    rm -f "$partial"
    return 1
  fi
  prune "$folder" "$ending" "$SLIPWAY_BACKUP_KEEP" "$SLIPWAY_BACKUP_KEEP"
  future_fault "$folder" "$ending" || true
  say "$name: $(du -h --apparent-size "$folder/$name$ending" | cut -f1); there are $(list_backups "$folder" "$ending" | wc -l)"
)

is_due() { # no copy younger than the interval
  local age
  age=$(newest_age "$folder" "$ending") || return 0 # back_up says what is wrong
  ((${age:-$SLIPWAY_STATE_BACKUP_S} >= SLIPWAY_STATE_BACKUP_S))
}

failed=0 next=0
while true; do
  if [[ -e $state/job_state ]] && ((SECONDS >= next)) && is_due; then
    if back_up; then
      failed=0
    else
      failed=$((failed + 1))
      # One try may meet a file between two names.
      ((failed < 2)) || say "FAILED: no backup of slurmctld's state ($(df -h --output=avail "$folder" | tail -n 1 | tr -d ' ') are free); the older ones stay; again in 60 s"
      next=$((SECONDS + (failed < 2 ? 2 : 60)))
    fi
  fi
  if [[ -d $state && ! -x $state ]] && ((SECONDS >= next)); then
    say "FAILED: no backup of slurmctld's state: $state cannot be read; again in 60 s"
    next=$((SECONDS + 60))
  fi
  sleep 1 & wait $!
done
