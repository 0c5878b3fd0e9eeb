#!/usr/bin/env bash
# Fills one version of the shared root from the image of the pod's container `source`, which does nothing but be there: its root is copied by
# /proc. The version appears in one step, when it is whole. Killed half-way, the next start goes on where this one ended.
# SLIPWAY_ROOT_VERSION and SLIPWAY_ROOT_IMAGE say what. Exit code 3: the name stands for something else already; trying again cannot help.
set -euo pipefail
say() { printf 'root-fill.sh: %s\n' "$*" >&2; }
shared=/shared
version=$SLIPWAY_ROOT_VERSION
image=$SLIPWAY_ROOT_IMAGE
partial=$shared/filling/$version
record=$shared/sources/$version

install -d -m 0755 "$shared/jobs" "$shared/sources"
install -d -m 0700 "$shared/versions" "$shared/filling"
exec 9>"$shared/filling/$version.lock"
flock 9

if [[ -d $shared/versions/$version ]]; then
  filled_from=$(cat "$record" 2>/dev/null || true)
  if [[ $filled_from == "$image" ]]; then
    say "version $version is there already"
    exit 0
  fi
  say "version $version is there already, filled from ${filled_from:-something unknown}, not from $image. A name is for one image: choose another name"
  exit 3
fi

for ((tries = 0; tries < 300; tries++)); do
  if source=$(pgrep -o -x hold); then break; fi
  sleep 0.1
done
[[ -n ${source:-} ]] || { say "the container of $image does not run"; exit 1; }
from=/proc/$source/root

began=$SECONDS
if [[ -d $partial ]]; then
  say "going on with version $version, begun earlier"
  rsync -aHAX --numeric-ids --one-file-system --delete --exclude=/hold "$from/" "$partial/"
else
  say "filling version $version from $image"
  mkdir -p "$partial"
  tar --create --one-file-system --xattrs --acls --numeric-owner --sparse --exclude=./hold --directory="$from" . |
    tar --extract --xattrs --xattrs-include='*' --acls --numeric-owner --preserve-permissions --directory="$partial"
fi
rm -f "$partial/.dockerenv"

# Same files, kinds, sizes, owners and modes: the copy is whole. The places that the plugin mounts over do not count.
names() { (cd "$1" && find . -xdev \( -path ./hold -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./etc/hosts -o -path ./etc/hostname \
  -o -path ./etc/resolv.conf -o -path ./.dockerenv \) -prune -o \( -type d -printf '%P %y %m %U:%G\n' \) -o -printf '%P %y %m %U:%G %s\n' | LC_ALL=C sort | sha256sum); }
if [[ $(names "$from") != "$(names "$partial")" ]]; then
  say "the copy differs from the image; starting over with the next try"
  rm -rf "$partial"
  exit 1
fi

install -d -m 0755 "$partial"/{proc,sys,dev,run,home}
install -d -m 1777 "$partial/tmp" "$partial/var/tmp"
# These come from the pod, and no link may be in their way.
for file in hosts resolv.conf; do
  if [[ -L $partial/etc/$file ]]; then rm "$partial/etc/$file"; fi
done
# Two installs at once wait for each other; apt's own default is to fail.
if [[ -d $partial/etc/apt/apt.conf.d ]]; then
  echo 'DPkg::Lock::Timeout "600";' >"$partial/etc/apt/apt.conf.d/90slipway-lock"
fi
chmod 0755 "$partial"
sync --file-system "$partial"
printf '%s\n' "$image" >"$record.new"
mv "$record.new" "$record"
mv -T "$partial" "$shared/versions/$version"
rm -f "$shared/filling/$version.lock"
say "version $version is filled: $(du -sm --one-file-system "$shared/versions/$version" | cut -f1) MiB in $((SECONDS - began)) s"
