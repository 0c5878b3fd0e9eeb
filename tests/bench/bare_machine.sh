#!/usr/bin/env bash
# Runs a command in a fresh Debian that has nothing installed by hand but make, git and certificates: no Go, no Python, no caches. The command starts in a clone
# of this checkout. Prints the seconds that the command took as its last line.
# usage: bare_machine.sh FOLDER COMMAND   (root; FOLDER is made, and removed at the end)
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
root=$(cd "$1" && pwd)/root command=$2
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
trap 'rm -rf --one-file-system "$root"' EXIT

# The machine's own mirror and certificates, as whoever set it up gave them.
mapfile -t sources < <(find /etc/apt/sources.list /etc/apt/sources.list.d \( -name '*.sources' -o -name '*.list' \) -size +0)
mmdebstrap --quiet --variant=minbase --include=make,git,ca-certificates --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$root" "${sources[@]}"
for path in /etc/apt/apt.conf.d /etc/ssl/certs/ca-certificates.crt /etc/pip.conf /etc/resolv.conf /etc/hosts; do
  [[ ! -e $path ]] || cp -rTL "$path" "$root$path"
done
rm -f "$root"/etc/apt/apt.conf.d/docker-*
git clone -q "$checkout" "$root/root/slipway"

export SLIPWAY_BARE_ROOT=$root SLIPWAY_BARE_COMMAND=$command
unshare --mount --propagation private bash -euc '
  cd "$SLIPWAY_BARE_ROOT" && mount --bind . . && cd "$SLIPWAY_BARE_ROOT" && mkdir -p old
  for folder in proc sys dev; do mount --rbind "/$folder" "$folder"; done
  mount -t tmpfs run run && mount -t tmpfs tmp tmp
  pivot_root . old && umount -l /old && mount --make-rshared /
  certificates=/etc/ssl/certs/ca-certificates.crt
  cd /root/slipway
  begin=$(date +%s%N)
  env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SSL_CERT_FILE=$certificates PIP_CERT=$certificates \
    bash -c "$SLIPWAY_BARE_COMMAND"
  end=$(date +%s%N)
  [[ ! -e .slipway ]] || make down
  echo "$(((end - begin) / 1000000))e-3"
'
