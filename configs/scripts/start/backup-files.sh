# Sourced by what makes and takes backups: their names, which of them stay, and how a restore chooses one. Needs a function `say`.
# A backup is one file, called after the moment when it was begun (UTC), so that names sort as times do. It gets its name when it is whole.
backup_time='[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]-[0-9][0-9]-[0-9][0-9]Z'

list_backups() { # FOLDER ENDING: the names without their ending, the newest first
  local file
  for file in "$1"/$backup_time"$2"; do
    if [[ -f $file ]]; then basename "$file" "$2"; fi
  done | sort -r
}

name_now() { date -u +%Y-%m-%dT%H-%M-%SZ; }

newest_age() { # FOLDER ENDING: of the newest one, in seconds; nothing where there is none
  local name clock
  name=$(list_backups "$1" "$2" | sed -n 1p)
  [[ -n $name ]] || return 0
  clock=${name#*T}
  clock=${clock%Z}
  echo $(($(date +%s) - $(date -d "${name%T*} ${clock//-/:} UTC" +%s)))
}

begin_backup() { # FOLDER: one at a time, and nothing left of those that were killed
  [[ -d $1 && -w $1 ]] || { say "FAILED: the folder $1 is not there, or not ours to write"; return 1; }
  exec 9>"$1/.lock"
  flock --nonblock 9 || { say "FAILED: another backup into $1 is under way"; return 1; }
  rm -f "$1"/.partial-*
}

publish() { # PARTIAL FINAL: on disk, and then in its place
  sync "$1" && mv -T "$1" "$2" && sync "${2%/*}"
}

prune() { # FOLDER ENDING KEEP [DAYS]: the newest KEEP stay, and of each of the newest DAYS days the last one
  local name count=0 days=0 day=
  while read -r name; do
    count=$((count + 1))
    if [[ ${name%%T*} != "$day" ]]; then
      day=${name%%T*} days=$((days + 1))
      ((days > ${4:-0})) || continue
    fi
    ((count <= $3)) || rm -f "$1/$name$2"
  done < <(list_backups "$1" "$2")
}

choose_backup() { # FOLDER ENDING WHAT: sets `chosen` to a backup's file, or to nothing for an empty start. Waits until restoreFrom says which.
  local from name told= newest
  local -a names
  [[ -d $1 && -r $1 ]] || { say "FAILED: the folder $1 is not there, or not ours to read: whether there are backups is unknown"; return 1; }
  while true; do
    chosen='' newest=
    mapfile -t names < <(list_backups "$1" "$2")
    from=$(cat /etc/slipway/restore/from 2>/dev/null) || from=
    if ((${#names[@]})); then newest=${names[0]}; fi
    case $from in
      nothing) return 0 ;;
      '') [[ -n $newest ]] || return 0 ;;
      latest) chosen=$newest ;;
      *)
        for name in "${names[@]}"; do
          if [[ ! $name > $from ]]; then chosen=$name; break; fi
        done
        ;;
    esac
    if [[ -n $chosen ]]; then
      chosen=$1/$chosen$2
      return 0
    fi
    if [[ -n $from ]]; then
      told_now="WAITING: $3 is empty, and there is no backup for backup.restoreFrom: $from. There are: ${names[*]:-none}. \`nothing\` starts with an empty one"
    else
      told_now="WAITING: $3 is empty, but there are ${#names[@]} backups, the newest $newest. Set backup.restoreFrom to \`latest\`, to a time such as $newest, or to \`nothing\`; then deploy"
    fi
    [[ $told_now == "$told" ]] || say "$told_now"
    told=$told_now
    sleep 2 & wait $!
  done
}
