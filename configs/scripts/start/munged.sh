#!/usr/bin/env bash
# munged for the other containers of its pod, over the socket in /run/munge (a volume they share). The key comes from the Secret.
# As root it becomes user munge and takes the folders; as user munge it takes them as they are.
set -euo pipefail
as_munge=()
if [[ $(id -u) == 0 ]]; then
  as_munge=(setpriv --reuid munge --regid munge --clear-groups)
  install -d -o munge -g munge -m 0755 /run/munge
  install -d -o munge -g munge -m 0700 /var/lib/munge
else
  install -d -m 0700 /var/lib/munge
fi

# munged wants a key that only its own user can read; a Secret's file cannot be that.
key=/var/lib/munge/munge.key
rm -f "$key"
(umask 0377 && cat /etc/slipway/munge/munge.key >"$key")
[[ $(id -u) != 0 ]] || chown munge:munge "$key"

# --force: a volume is writable for more than munged likes, and the socket of a container that was killed is in the way of its successor.
exec "${as_munge[@]}" munged --foreground --force --num-threads 10 --key-file "$key"
