#!/usr/bin/env bash
# slurmctld as user slurm: state in the StateSaveLocation, on the claim; configuration from a copy beside it, which config_sync keeps: what
# the ConfigMap in /etc/slurm has may not be taken over yet, and a start that takes nodes or partitions away would end their jobs.
# Jobs, and nodes that are down or drained, are recovered from the state; partitions and node lines are those of the configuration.
# slurmctld runs as a daemon that this script watches, not with -D: only so does a reconfigure try the new files in a process of its own,
# and keep the old process when they are no good. With -D it takes its own place, and ends with them (seen with 26.05.5).
set -euo pipefail
say() { printf 'slurmctld.sh: %s\n' "$*" >&2; }
setting() { sed -n "s/^$1=//p" /etc/slurm/slurm.conf | tail -n 1; }

state=$(setting StateSaveLocation) # a folder on the claim; the claim's top is writable for its group, and slurmctld calls that a hole
accepted=${state%/*}/conf          # a link to the copy, swapped in one step
run=/run/slurm
as_slurm=() owner=()
if [[ $(id -u) == 0 ]]; then # else the pod's fsGroup gave the claim to group slurm
  as_slurm=(setpriv --reuid slurm --regid slurm --clear-groups)
  owner=(-o slurm -g slurm)
fi
install -d "${owner[@]}" -m 0700 "$state"
[[ -d $run ]] || install -d "${owner[@]}" "$run"
"${as_slurm[@]}" test -r /etc/slipway/jwt/jwt_hs256.key || say "user slurm cannot read /etc/slipway/jwt/jwt_hs256.key: mount the Secret with fsGroup 64030 and mode 0440"

# Slurm saves the usage of associations every few minutes and at its end. A slurmctld that ended before the first time, killed or over a QOS that
# was not in slurmdbd yet, would never start again ("No Assoc usage file to recover"): it asks for what is missing because of this file, which
# it makes again with the same id, that of slurmdbd. What else it has saved, jobs and nodes, is recovered all the same.
if [[ -n $(setting AccountingStorageType) && -e $state/clustername && ! -e $state/assoc_usage && ! -e $state/assoc_usage.old ]]; then
  say "slurmctld ended before it saved any usage; there is none to recover"
  rm -f "$state/clustername"
fi

accept_files() { # those of the ConfigMap, as they are now
  rm -rf "$accepted.before" "$accepted.start" "$accepted.link"
  install -d "${owner[@]}" "$accepted.start"
  cp -L /etc/slurm/* "$accepted.start"
  ln -s conf.start "$accepted.link"
  mv -T "$accepted.link" "$accepted"
}

# Only where there is no copy: one that cannot be read is not missing, and the ConfigMap's files may not be taken over yet.
is_missing() { [[ $(LC_ALL=C stat --dereference -- "$1" 2>&1) == *"No such file or directory" ]]; }
version=$(slurmctld -V)
if [[ -L $accepted.before ]]; then # the pod was killed while slurmctld read other files: it may have refused them, and would end with them now
  say "slurmctld ended before it had taken the files of $(readlink "$accepted"); it starts with those before, $(readlink "$accepted.before")"
  mv -T "$accepted.before" "$accepted"
fi
if is_missing "$accepted/slurm.conf"; then
  accept_files
elif [[ ! -r $accepted/slurm.conf ]]; then
  say "FAILED: $accepted/slurm.conf, the configuration that slurmctld had, cannot be read"
  exit 1
fi
export SLURM_CONF=$accepted/slurm.conf

stopping=
trap 'stopping=1' TERM INT
is_new_slurm() { # another version than the last that ran here. A note that cannot be read says neither
  local noted=''
  if ! is_missing "$accepted.version"; then
    noted=$(cat "$accepted.version") || { say "FAILED: $accepted.version cannot be read: which Slurm ran here last is unknown"; return 1; }
  fi
  [[ $noted != "$version" ]]
}

pause() { sleep "$1" & wait $! || true; } # so that a signal is heard at once

tries=0
until munge --no-input --output /dev/null 2>/dev/null; do
  [[ -z $stopping ]] || exit 0
  ((tries++ % 10)) || say "waiting for munged"
  pause 0.5
done

watch_nodes() { # for prolog-slurmctld.sh: while jobs wait, the busy nodes that are not up, by one question for all of them
  local nap asked busy
  exec {nap}<> <(:) # a pipe in which nothing comes: reading it is a pause that needs no process
  while true; do
    if [[ -e $run/waiting ]]; then
      rm -f "$run/waiting" # before the question: who asks from now on gets a later answer
      asked=${EPOCHREALTIME/./}
      if busy=$(timeout 10 sinfo --noheader --Node --states=allocated,mixed,completing --format='%T %N' 2>/dev/null); then
        # The mark after a state: * does not respond, # powering up, ~ powered down, % powering down, ! power down asked for. Source: sinfo(1).
        busy=$(sed -n 's/^[a-z]*[*#~%!] //p' <<<"$busy" | sort -u)
        printf '%s %s\n' "$asked" "${busy//$'\n'/ }" >"$run/unready.new"
        mv "$run/unready.new" "$run/unready"
      fi
    fi
    read -r -t 0.1 -u "$nap" || true
  done
}

main_process() { pgrep --parent $$ '^slurmctld'; } # a reconfigure changes it; the one that gives way removes the pid file

key_is_due() { # another munge key waits in this pod, and every kubelet has had the time to bring it to the others
  local since
  [[ -e /run/munge/key-waits ]] && since=$(stat -c %Y /run/munge/key-waits 2>/dev/null) || return 1
  (($(date +%s) - since >= ${SLIPWAY_KEY_SPREAD_S:-120}))
}

key_id() { cat /run/munge/key-id 2>/dev/null || true; }

await_key_elsewhere() { # this pod is new and has another munge key than slurmctld had; the other pods take it while nothing listens here
  local last until_s=$((SECONDS + ${SLIPWAY_KEY_SPREAD_S:-120}))
  last=''
  if ! is_missing "$accepted.munge-key"; then
    last=$(cat "$accepted.munge-key") || { say "FAILED: $accepted.munge-key cannot be read: which munge key slurmctld had is unknown"; exit 1; }
  fi
  [[ -n $last && $last != $(key_id) ]] || return 0
  say "this pod has another munge key than slurmctld had; it starts in ${SLIPWAY_KEY_SPREAD_S:-120} s, when all pods have it"
  while ((SECONDS < until_s)) && [[ -z $stopping ]]; do pause 1; done
}

start_slurmctld() {
  key_id >"$accepted.munge-key"
  "${as_slurm[@]}" slurmctld -L "$run/slurmctld.log" || say "slurmctld did not start"
}

change_key() { # PID: while slurmctld is silent, each pod's munged takes the key (munged.sh); nobody talks with two keys
  local tries
  say "another munge key has come to all pods; slurmctld stops for some seconds, in which they take it"
  kill -TERM "$1" || true
  for ((tries = 0; tries < 60; tries++)); do
    if [[ ! -e /run/munge/key-waits ]] && ! main_process >/dev/null; then break; fi
    pause 0.5
  done
  [[ -n $stopping ]] || pause 8 # the others look every second, and an answer may take two
  [[ -n $stopping ]] || start_slurmctld
}

# A daemon's own standard error is /dev/null; this script's is the container's log. The link is for slurmctld's wish to work where its log is.
ln -sf "/proc/$$/fd/2" "$run/slurmctld.log"
await_key_elsewhere
[[ -z $stopping ]] || exit 0
watch_nodes &
start_slurmctld
missed=0
noted=''
began=$SECONDS
while ((missed < 10)); do
  if pid=$(main_process); then
    missed=0
    if [[ $stopping == 1 ]]; then
      kill -TERM "$pid" || true # it saves its state, then ends
      stopping=told
    elif [[ -z $stopping ]] && key_is_due; then
      change_key "$pid"
    fi
    if ((SECONDS - began > 10)) && [[ -z $noted ]]; then
      if is_new_slurm; then echo "$version" >"$accepted.version" || say "cannot note which Slurm runs here"; fi
      noted=1
    fi
  elif [[ -n $stopping ]]; then
    exit 0
  else
    missed=$((missed + 1))
  fi
  pause 0.5
done
say "slurmctld ended"
if ((SECONDS - began < 15)) && is_new_slurm; then
  say "this Slurm, another than before, may not read the files of its predecessor; the next start is with those of the ConfigMap"
  accept_files
fi
exit 1
