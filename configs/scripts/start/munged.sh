#!/usr/bin/env bash
# munged for the other containers of its pod, over the socket in /run/munge (a volume they share). The key comes from the Secret.
# As root it becomes user munge and takes the folders; as user munge it takes them as they are.
# munged knows one key and reads it at its start. So this script stays and starts it again when the kubelet brings another key: pods, and the jobs
# in them, live on. Until the last pod has it, pods with different keys refuse each other; Slurm's daemons try again.
set -euo pipefail
say() { printf 'munged.sh: %s\n' "$*" >&2; }
as_munge=()
if [[ $(id -u) == 0 ]]; then
  as_munge=(setpriv --reuid munge --regid munge --clear-groups)
  install -d -o munge -g munge -m 0755 /run/munge
  install -d -o munge -g munge -m 0700 /var/lib/munge
else
  install -d -m 0700 /var/lib/munge
fi
secret=/etc/slipway/munge/munge.key
key=/var/lib/munge/munge.key

start() {
  # munged wants a key that only its own user can read; a Secret's file cannot be that.
  rm -f "$key"
  (umask 0377 && cat "$secret" >"$key")
  [[ $(id -u) != 0 ]] || chown munge:munge "$key"
  # --force: a volume is writable for more than munged likes, and the socket of a container that was killed is in the way of its successor.
  "${as_munge[@]}" munged --foreground --force --num-threads 10 --key-file "$key" &
  munged=$!
}

stopping=
trap 'stopping=1; kill -TERM "$munged" 2>/dev/null || true' TERM INT
start
while kill -0 "$munged" 2>/dev/null; do
  sleep "${SLIPWAY_KEY_POLL_S:-5}" &
  wait -n "$munged" $! || true
  if [[ -z $stopping && -s $secret ]] && ! cmp --silent "$secret" "$key"; then
    kill -TERM "$munged" 2>/dev/null || true
    wait "$munged" || true
    [[ -n $stopping ]] || start
    say "another key has come; munged runs with it"
  fi
done
code=0
wait "$munged" || code=$?
[[ -z $stopping ]] || code=0
exit "$code"
