#!/usr/bin/env bash
# Removes versions of the shared root that nothing needs: not declared (SLIPWAY_ROOT_VERSIONS, in spaces) for SLIPWAY_ROOT_KEEP_DAYS, not current, and
# of no job that begins or runs. Unknown is needed: a version is first put out of reach, then the jobs are looked at once more, then it is removed.
set -euo pipefail
say() { printf 'root-clean.sh: %s\n' "$*" >&2; }
shared=/shared
now=$(date +%s)
[[ -d $shared/versions && -d $shared/jobs ]] || exit 0

users() { find "$shared/jobs" -maxdepth 1 -type l -lname "$1" | wc -l; }
is_declared() { [[ " $SLIPWAY_ROOT_VERSIONS " == *" $1 "* ]]; }

# Of a run that was killed: what it had not judged to the end comes back, as a job may have taken it; what it had begun to remove goes.
for folder in "$shared"/filling/.aside-*/; do
  [[ ! -d $folder ]] || mv -T "$folder" "$shared/versions/${folder##*/.aside-}"
done
rm -rf "$shared"/filling/.gone-*

current=$(readlink "$shared/current") || { say "no version is current, so none is removed"; exit 0; }
for folder in "$shared"/versions/*/; do
  [[ -d $folder ]] || continue
  version=$(basename "$folder")
  mark=$shared/sources/$version.unused
  if is_declared "$version" || [[ $current == "versions/$version" ]]; then
    rm -f "$mark"
    continue
  fi
  [[ -e $mark ]] || echo "$now" >"$mark"
  since=$(<"$mark")
  if ((now - since < SLIPWAY_ROOT_KEEP_DAYS * 86400)); then
    say "version $version is not declared any more; it stays for $((SLIPWAY_ROOT_KEEP_DAYS - (now - since) / 86400)) more days"
    continue
  fi
  number=$(users "$version")
  if ((number)); then
    say "version $version is used by $number jobs; it stays"
    continue
  fi
  mv -T "$shared/versions/$version" "$shared/filling/.aside-$version"
  number=$(users "$version")
  current=$(readlink "$shared/current")
  if ((number)) || [[ $current == "versions/$version" ]]; then
    mv -T "$shared/filling/.aside-$version" "$shared/versions/$version"
    say "version $version was taken at this moment; it stays"
    continue
  fi
  mv -T "$shared/filling/.aside-$version" "$shared/filling/.gone-$version"
  rm -rf "$shared/filling/.gone-$version"
  rm -f "$mark" "$shared/sources/$version" "$shared/sources/$version".{manifest,carried}
  say "version $version is removed"
done
