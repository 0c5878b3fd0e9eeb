#!/usr/bin/env bash
# nfs-ganesha, with its data and what it remembers of its clients on the claim in /srv/nfs. Makes the exported folders (SLIPWAY_FOLDERS: name:mode
# ...), and users' homes: their export squashes root, so no login could. A folder that is there keeps what it is.
set -euo pipefail
say() { printf 'nfs.sh: %s\n' "$*" >&2; }
data=/srv/nfs

for folder in $SLIPWAY_FOLDERS; do
  name=${folder%:*}
  [[ ! -d $data/$name ]] || continue
  rm -rf "$data/.new"
  mkdir -m "${folder#*:}" "$data/.new" # renamed when whole: killed half-way, it has no wrong mode
  mv -T "$data/.new" "$data/$name"
  say "made /$name"
done
install -d -m 0700 "$data/.ganesha"

make_homes() {
  local name uid gid
  while IFS=: read -r name _ uid gid _; do
    [[ -n $name && ! -e $data/home/$name ]] || continue
    rm -rf "$data/.home"
    mkdir -m 0700 "$data/.home"
    cp -R /etc/skel/. "$data/.home"
    chown -R "$uid:$gid" "$data/.home"
    mv -T "$data/.home" "$data/home/$name"
    say "made the home of $name"
  done </var/lib/extrausers/passwd
}

watch_users() {
  local nap
  exec {nap}<> <(:) # a pipe in which nothing comes: reading it is a pause that needs no process
  while true; do
    make_homes || say "could not make a home; trying again"
    read -r -t 3 -u "$nap" || true
  done
}

if [[ -d $data/home ]]; then
  make_homes || say "could not make a home; trying again"
  watch_users &
fi
exec ganesha.nfsd -F -x -f /etc/slipway/nfs/ganesha.conf -p /run/ganesha.pid -L STDERR
