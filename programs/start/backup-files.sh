# Sourced by what makes and takes backups: their names, which of them stay, and how a restore chooses one. Needs a function `say`.
# A backup is one file, called after the moment when it was begun (UTC), so that names sort as times do. It gets its name when it is whole.
backup_time='[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]-[0-9][0-9]-[0-9][0-9]Z'

all_backups() { # FOLDER ENDING: the names without their ending, the newest first. Fails where the folder cannot be read: that is not an empty one
  local found file name
  found=$(find "$1" -mindepth 1 -maxdepth 1 -type f -name "$backup_time$2" -printf '%f\n') || { say "FAILED: the folder $1 cannot be read"; return 1; }
  while read -r file; do
    name=${file%"$2"}
    [[ -z $name ]] || echo "$name"
  done <<<"$found" | sort -r
}

# A name later than now comes from a clock that was wrong: nothing says when it was really made. It is kept, and named as a fault; it counts neither
# for the age of the newest one nor for what stays, and a restore takes it only where restoreFrom gives its very name. Clocks may differ by minutes.
list_backups() { # FOLDER ENDING: those of the past, the newest first
  local names name latest
  names=$(all_backups "$1" "$2") || return 1
  latest=$(date -u -d '+300 seconds' +%Y-%m-%dT%H-%M-%SZ)
  while read -r name; do
    if [[ -n $name && ! $name > $latest ]]; then echo "$name"; fi
  done <<<"$names"
}

list_future_backups() { # FOLDER ENDING
  local all past
  all=$(all_backups "$1" "$2") && past=$(list_backups "$1" "$2") || return 1
  comm -23 <(sort <<<"$all") <(sort <<<"$past")
}

future_fault() { # FOLDER ENDING: says which backups are dated in the future, and fails where there are any
  local names
  names=$(list_future_backups "$1" "$2") || return 1
  [[ -n $names ]] || return 0
  say "FAILED: dated in the future, by a clock that was wrong: ${names//$'\n'/ } in $1. Look at the clocks of the machines; then rename or remove these files. Restores leave them out"
  return 1
}

name_now() { date -u +%Y-%m-%dT%H-%M-%SZ; }

newest_age() { # FOLDER ENDING: of the newest one, in seconds; nothing where there is none
  local name clock
  name=$(list_backups "$1" "$2") || return 1
  name=${name%%$'\n'*}
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
  local names name count=0 days=0 day=
  names=$(list_backups "$1" "$2") || return 1
  while read -r name; do
    [[ -n $name ]] || continue
    count=$((count + 1))
    if [[ ${name%%T*} != "$day" ]]; then
      day=${name%%T*} days=$((days + 1))
      ((days > ${4:-0})) || continue
    fi
    ((count <= $3)) || rm -f "$1/$name$2"
  done <<<"$names"
}

choose_backup() { # FOLDER ENDING WHAT: sets `chosen` to a backup's file, or to nothing for an empty start. Waits until restoreFrom says which.
  local from name told= newest future found
  local -a names
  [[ -d $1 && -r $1 ]] || { say "FAILED: the folder $1 is not there, or not ours to read: whether there are backups is unknown"; return 1; }
  while true; do
    chosen='' newest='' names=()
    found=$(list_backups "$1" "$2") && future=$(list_future_backups "$1" "$2") || return 1
    [[ -z $found ]] || mapfile -t names <<<"$found"
    from=$(cat /etc/slipway/restore/from) || { say "FAILED: backup.restoreFrom is unknown: /etc/slipway/restore/from cannot be read"; return 1; }
    if ((${#names[@]})); then newest=${names[0]}; fi
    case $from in
      nothing) return 0 ;;
      '') [[ -n $newest || -n $future ]] || return 0 ;;
      latest) chosen=$newest ;;
      *)
        for name in "${names[@]}"; do
          if [[ ! $name > $from ]]; then chosen=$name; break; fi
        done
        if [[ $'\n'$future$'\n' == *$'\n'"$from"$'\n'* ]]; then chosen=$from; fi
        ;;
    esac
    if [[ -n $chosen ]]; then
      chosen=$1/$chosen$2
      return 0
    fi
    if [[ -n $from ]]; then
      told_now="WAITING: $3 is empty, and there is no backup for backup.restoreFrom: $from. There are: ${names[*]:-none}. \`nothing\` starts with an empty one"
    elif [[ -z $newest ]]; then
      told_now="WAITING: $3 is empty, and all backups that there are are dated in the future. Set backup.restoreFrom to the name of one, or to \`nothing\`; then deploy"
    else
      told_now="WAITING: $3 is empty, but there are ${#names[@]} backups, the newest $newest. Set backup.restoreFrom to \`latest\`, to a time such as $newest, or to \`nothing\`; then deploy"
    fi
    [[ -z $future ]] || told_now+=". Dated in the future, by a clock that was wrong, and taken only by its very name: ${future//$'\n'/ }"
    [[ $told_now == "$told" ]] || say "$told_now"
    told=$told_now
    sleep 2 & wait $!
  done
}
