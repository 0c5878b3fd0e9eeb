#!/usr/bin/env bash
# munged for a pod, over the socket in /run/munge. The key comes from the Secret. In a container of its own it runs as user munge, and /run/munge is
# a volume that the pod's containers share. In a worker's container it runs as root, has the key that root alone can read, keeps it in memory,
# and gives all its rights up before it becomes munged.
# munged knows one key and reads it at its start, so this script starts it again when another key has come; pods and their jobs live on. But no two
# pods may use different keys while they talk: slurmctld would refuse a step's message that its job has ended, and the step sends it once only
# (26.05.5). So a key that the kubelet brings waits, and all pods take it at the same signal: slurmctld no longer listens. It stops for that some
# seconds after every kubelet has had its time (programs/slurmctld); to a silent slurmctld everybody sends again.
set -euo pipefail
say() { printf 'munged.sh: %s\n' "$*" >&2; }
as_munge=()
if [[ $(id -u) == 0 ]]; then
  as_munge=(setpriv --reuid munge --regid munge --clear-groups --no-new-privs --inh-caps -all --bounding-set -all)
  mountpoint -q /var/lib/munge || mount -t tmpfs -o mode=0700,size=1m,nosuid,nodev,noexec munge /var/lib/munge
  install -d -o munge -g munge -m 0755 /run/munge
  install -d -o munge -g munge -m 0700 /var/lib/munge
elif [[ ! -d /var/lib/munge ]]; then
  mkdir -m 0700 /var/lib/munge
fi
secret=/etc/slipway/munge/munge.key
key=/var/lib/munge/munge.key

take_key() { # munged wants one that only its own user can read; a Secret's file cannot be that
  [[ ! -e $key.new ]] || rm -f "$key.new"
  (umask 0377 && exec cat "$secret" >"$key.new")
  [[ $(id -u) != 0 ]] || chown munge:munge "$key.new"
  mv "$key.new" "$key"
  local sum
  sum=$(exec sha256sum <"$key")
  echo "${sum:0:16}" >/run/munge/key-id # for programs/slurmctld, which sees no key; it says nothing of one
}

origin=()
find_origin() { # SLIPWAY_ORIGIN: the Service whose address credentials are to name; Slurm shows its name as the AllocNode of jobs
  local address='' end=$((SECONDS + 15))
  # At the first start the Service may be younger than the pod, and cluster DNS remembers a "no" for 5 s. The startup probe waits for 60 s.
  until read -r address _ < <(timeout 3 getent ahostsv4 "$SLIPWAY_ORIGIN"); do
    ((SECONDS < end)) || break
    sleep 1
  done
  if [[ -n $address ]]; then origin=(--origin "$address"); else say "no IPv4 address of $SLIPWAY_ORIGIN in DNS: jobs from here show this pod's address as their AllocNode"; fi
}

start() {
  # --force: a volume is writable for more than munged likes, and the socket of a container that was killed is in the way of its successor.
  # --max-ttl: munged remembers each credential that it has decoded for as long as that is valid. Slurm's are for five minutes.
  "${as_munge[@]}" munged --foreground --force --num-threads 10 --max-ttl 300 --key-file "$key" "${origin[@]}" 9<&- &
  munged=$!
}

unread=''
has_waiting_key() { # one that cannot be read is no other: slurmctld stops for another
  local code=0
  # The kubelet never writes into a file, so another key is another file. The file that was compared last stays open as descriptor 9.
  [[ -s $secret && ! $secret -ef /dev/fd/9 ]] || return 1
  # Opened once: the kubelet may put another file there between two looks.
  if { exec 9<"$secret"; } 2>/dev/null; then cmp --silent /dev/fd/9 "$key" || code=$?; else code=2; fi
  ((code < 2)) || [[ -n $unread ]] || say "FAILED: whether $secret has another key is unknown: it cannot be compared with the one in use, which stays"
  unread=
  ((code < 2)) || unread=1
  ((code == 0)) || exec 9<&-
  ((code == 1))
}

silent=0
is_silent() { # slurmctld's port is closed, or it gave no answer three times in a row, as while its pod is replaced
  local said
  if said=$(LC_ALL=C timeout 2 bash -c "exec 3<>/dev/tcp/$SLIPWAY_SLURMCTLD/6817" 2>&1); then
    silent=0
    return 1
  fi
  silent=$((silent + 1))
  [[ $said == *"Connection refused"* ]] || ((silent >= 3))
}

is_late() { (($(date +%s) - $(stat -c %Y "$waiting") > ${SLIPWAY_KEY_LATEST_S:-600})); } # slurmctld has long been with another key

stopping='' pause=5
waiting=/run/munge/key-waits # for programs/slurmctld
munged=''
trap 'stopping=1; kill -TERM "$munged" 2>/dev/null || true' TERM INT
trap '[[ -z $munged ]] || kill -TERM "$munged" 2>/dev/null || true' EXIT # of a script that cannot go on, for instance for want of processes
[[ -z ${SLIPWAY_ORIGIN:-} ]] || find_origin
[[ -s $key ]] || take_key # a key is there when this script was started again: the pod keeps it
start
while kill -0 "$munged" 2>/dev/null; do
  sleep "$pause" &
  wait -n "$munged" $! || true
  [[ -z $stopping ]] || continue
  if ! has_waiting_key; then
    [[ ! -e $waiting ]] || rm -f "$waiting"
    pause=5
    continue
  fi
  if [[ ! -e $waiting ]]; then
    say "another key has come; it waits until slurmctld stops to listen"
    : >"$waiting"
  fi
  pause=1
  if is_silent || is_late; then
    kill -TERM "$munged" 2>/dev/null || true
    wait "$munged" || true
    [[ -z $stopping ]] || break
    take_key
    start
    rm -f "$waiting"
    pause=5 silent=0
    say "munged runs with another key"
  fi
done
code=0
wait "$munged" || code=$?
[[ -z $stopping ]] || code=0
exit "$code"
