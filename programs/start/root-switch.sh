#!/usr/bin/env bash
# Makes a version of the shared root current for new jobs and sessions, once it is filled and a program runs in it; else the old one stays.
# Running jobs and sessions keep their version.
set -euo pipefail
say() { printf 'root-switch.sh: %s\n' "$*" >&2; }
shared=/shared
version=$SLIPWAY_ROOT_VERSION
root=$shared/versions/$version

until [[ -d $root ]]; do
  ((SECONDS % 15)) || say "waiting until version $version is filled"
  sleep 1
done

if ! error=$(chroot "$root" /bin/sh -c : 2>&1); then
  say "REFUSED: no shell runs in version $version ($error); the version that is current stays"
  exit 3
fi

old=$(readlink "$shared/current" 2>/dev/null || true)
if [[ $old == "versions/$version" ]]; then
  say "version $version is current already"
  exit 0
fi
ln -sfn "versions/$version" "$shared/current.new"
mv -T "$shared/current.new" "$shared/current"
say "version $version is current${old:+, after ${old#versions/}}"
