#!/usr/bin/env bash
# Fills one version of the shared root. The version appears in one step, when it is whole. If it is interrupted, the next run resumes.
# SLIPWAY_ROOT_VERSION says which. From what, one of:
#   SLIPWAY_ROOT_IMAGE                    the image of the pod's container `source`, which does nothing but be there: its root is copied by /proc
#   SLIPWAY_ROOT_TAR, SLIPWAY_ROOT_SHA256 a tar of a root, at an address or on the shared volume, and its digest
# SLIPWAY_ROOT_CARRY_FROM, where given, is the version whose changes get into this one; programs/root_changes/plan.py has the rules.
# Exit code 3: the next try cannot help.
set -euo pipefail
export LC_ALL=C
say() { printf 'root-fill.sh: %s\n' "$*" >&2; }
refuse() { say "$*"; exit 3; }
shared=/shared
version=$SLIPWAY_ROOT_VERSION
carry_from=${SLIPWAY_ROOT_CARRY_FROM:-}
partial=$shared/filling/$version
record=$shared/sources/$version
lock=$shared/filling/$version.lock
if [[ -n ${SLIPWAY_ROOT_TAR:-} ]]; then
  stands_for="tar $SLIPWAY_ROOT_SHA256"
else
  stands_for=$SLIPWAY_ROOT_IMAGE
fi
# Beside a copy it takes what the copy leaves of the cores.
changes() { (cd /opt/slipway && exec nice python3 -EsSB -m programs.root_changes.run "$@"); }

# --- from an image

copy_image() {
  local tries source from
  for ((tries = 0; tries < 300; tries++)); do
    if source=$(pgrep -o -x hold); then break; fi
    sleep 0.1
  done
  [[ -n ${source:-} ]] || { say "the container of $SLIPWAY_ROOT_IMAGE does not run"; exit 1; }
  from=/proc/$source/root
  if [[ -d $partial ]]; then
    say "going on with version $version, begun earlier"
    copy=(rsync -aHAX --numeric-ids --one-file-system --delete --exclude=/hold "$from/" "$partial/")
  else
    say "filling version $version from $SLIPWAY_ROOT_IMAGE"
    mkdir -p "$partial"
    # The image is on another file system, which no file can be shared with: cp need not try for each.
    copy=(cp --archive --reflink=never --one-file-system --no-target-directory "$from/" "$partial")
  fi
  # Same files, kinds, sizes, owners and modes: the copy is whole. The image is read for that, and for the manifest, while it is copied; the copy
  # while it goes to the disk.
  local codes=()
  { "${copy[@]}" >&2 && echo copied && sync --file-system "$partial"; } | check "$source" || codes=("${PIPESTATUS[@]}")
  ((${codes[0]:-0} == 0)) || full_or_failed "${copy[0]}"
  case ${codes[1]:-0} in
    0) ;;
    3) rm -rf "$partial"; exit 3 ;;
    4) rm -rf "$partial"; say "starting over with the next try"; exit 1 ;;
    *) full_or_failed "reading it" ;;
  esac
  rmdir "$partial/hold" 2>/dev/null || true
  rm -f "$partial/.dockerenv"
}

# --- from a tar

tarball=$shared/filling/$version.tar
download=$tarball.part

size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }
digest_of() { sha256sum <"$1" | cut -d ' ' -f 1; }

# Gets what is still missing of the file. A server that knows no ranges sends all of it again.
fetch() {
  local status code=0
  status=$(curl --silent --show-error --location --proto '=http,https' --proto-redir '=http,https' --connect-timeout 30 --speed-limit 1 --speed-time 60 \
    --fail --continue-at - --output "$download" --write-out '%{http_code}' "$SLIPWAY_ROOT_TAR") || code=$?
  ((code)) || return 0
  case $status in
    416) rm -f "$download" ;;                      # more is here than there: it is another file by now
    408 | 425 | 429) ;;
    4??) rm -f "$download"; refuse "$SLIPWAY_ROOT_TAR answers $status: look at storage.root.versions[].tar.url" ;;
  esac
  case $code in
    23) full_or_failed curl ;;
    33) rm -f "$download" ;;
  esac
  return 1
}

get_tar() {
  local tries=0 was_begun=''
  if [[ $SLIPWAY_ROOT_TAR == file://* ]]; then
    tarball=${SLIPWAY_ROOT_TAR#file://}
    [[ -f $tarball ]] || { say "$tarball is not there; put the tar on the shared volume first"; exit 1; }
    say "reading $tarball"
    return # its digest is taken while it is unpacked
  fi
  [[ ! -f $tarball ]] || return 0 # it gets this name when its digest is right
  [[ ! -s $download ]] || was_begun=yes
  say "${was_begun:+going on to get}${was_begun:-getting} $SLIPWAY_ROOT_TAR"
  while true; do
    # A download that is whole gets no answer any more but 416, so it is looked at first.
    found=''
    if [[ ! -s $download ]] || ! found=$(digest_of "$download") || [[ $found != "$SLIPWAY_ROOT_SHA256" ]]; then
      until size=$(size_of "$download"); fetch; do
        # What comes in pieces comes too.
        (($(size_of "$download") < size + (1 << 20))) || tries=0
        ((++tries < 5)) || { say "$SLIPWAY_ROOT_TAR did not arrive in $tries tries; what did is kept for the next"; exit 1; }
        sleep $((tries * 2))
      done
      found=$(digest_of "$download")
    fi
    # What was begun earlier may be the start of another file.
    [[ $found != "$SLIPWAY_ROOT_SHA256" && -n $was_begun ]] || break
    was_begun=''
    rm -f "$download"
  done
  check_digest "$found"
  mv -T "$download" "$tarball"
}

check_digest() {
  [[ $1 != "$SLIPWAY_ROOT_SHA256" ]] || return 0
  rm -rf "$download" "$partial"
  refuse "$SLIPWAY_ROOT_TAR has the sha256 $1, not $SLIPWAY_ROOT_SHA256. Nothing of it is kept"
}

# GNU tar finds out the compression by the content. By itself it leaves members with `..` out and takes the slash from absolute ones, and it makes
# links that lead up or out only when all else is written, so nothing gets outside; but such a tar is not what somebody meant, and is refused.
unpack() {
  local said why='' code=0 sum=''
  rm -rf "$partial" # a file that was half written looks like a whole one
  mkdir -p "$partial"
  if [[ $SLIPWAY_ROOT_TAR == file://* ]]; then exec {sum}< <(digest_of "$tarball"); fi # beside tar, so that both read it once
  said=$(tar --extract --file="$tarball" --xattrs --xattrs-include='*' --acls --numeric-owner --preserve-permissions --directory="$partial" 2>&1 |
    sed -n '1,20p;$p;/No space left on device/p;/Disk quota exceeded/p;/Wrote only/p') || code=$?
  [[ -z $said ]] || printf '%s\n' "$said" | head -n 20 >&2
  if [[ -n $sum ]]; then
    read -r found <&"$sum" || { rm -rf "$partial"; say "$tarball cannot be read; the next try starts over"; exit 1; }
    exec {sum}<&-
    check_digest "$found"
  fi
  if grep -qE "Member name contains '\.\.'|Removing leading" <<<"$said"; then
    why="it has members with absolute paths or with .. in them"
  elif grep -qE 'No space left on device|Disk quota exceeded|Wrote only' <<<"$said"; then
    full_or_failed tar "$partial"
  elif ((code)); then
    why="it does not unpack: ${said##*$'\n'}"
  fi
  [[ -n $why ]] || return 0
  rm -rf "$partial"
  forget_tar
  refuse "$SLIPWAY_ROOT_TAR: $why"
}

forget_tar() { rm -f "$shared/filling/$version.tar" "$download"; }

copy_tar() {
  get_tar
  say "filling version $version from $SLIPWAY_ROOT_TAR"
  unpack
  sync --file-system "$partial" 9>&- & # most of it is on the disk when the check is done
  check || { code=$?; rm -rf "$partial"; ((code != 3)) || forget_tar; exit "$code"; }
  wait $! || full_or_failed sync "$partial" # whoever asks next is not told of what could not be written
}

# ---

check() { changes filled "$version" "$@"; }

# Says what came of a program, after a look at how much room is left; then removes what has to be done anew, for others want to write too.
full_or_failed() {
  local free
  free=$(df --output=avail -m "$shared" | tail -n 1 | tr -d ' ')
  rm -rf "${@:2}"
  ((free >= 10)) || say "the shared volume is full ($free MiB free): remove versions, or give it more room. Version $version is not there"
  say "$1 failed; the next try goes on"
  exit 1
}

install -d -m 0755 "$shared/jobs" "$shared/sources"
install -d -m 0700 "$shared/versions" "$shared/filling"
# Its last owner may have removed it while it was waited for; another could make and have one of the name then.
until [[ /dev/fd/9 -ef $lock ]]; do
  exec 9<>"$lock"
  flock --nonblock 9 && continue
  say "waiting for $lock: another fill of version $version has it, or root-clean.sh, which looks whether the version can go"
  flock 9
done

# root-clean.sh had put it out of reach, and was killed before it knew. It is declared again: the days that it stays begin anew when it is not.
if [[ -d $shared/filling/.aside-$version && ! -e $shared/versions/$version ]]; then
  mv -T "$shared/filling/.aside-$version" "$shared/versions/$version"
fi
rm -f "$record.unused"

if [[ -d $shared/versions/$version ]]; then
  filled_from=$(cat "$record" 2>/dev/null || true)
  [[ $filled_from == "$stands_for" ]] ||
    refuse "version $version is there already, filled from ${filled_from:-something unknown}, not from $stands_for. A name is for one image: choose another name"
  carried=$(sed -n '1s/^from //p' "$record.carried" 2>/dev/null || true)
  [[ -z $carry_from || $carried == "$carry_from" ]] ||
    refuse "version $version is there already, without what was changed in $carry_from: that is carried when a version is filled. Choose another name, or leave carryFrom out"
  forget_tar
  rm -f "$lock"
  say "version $version is there already"
  exit 0
fi

# What a fill had begun of something else, perhaps of a tar whose digest nobody had seen yet, is no start: rsync goes by size and time. Its lock says.
begun=$(<"$lock")
if [[ $begun != "$stands_for" ]]; then
  [[ ! -d $partial ]] || say "what was begun of version $version, from ${begun:-something unknown}, is removed"
  rm -rf "$partial"
  printf '%s\n' "$stands_for" >"$lock" || full_or_failed "writing $lock"
fi

began=$SECONDS
if [[ -n ${SLIPWAY_ROOT_TAR:-} ]]; then copy_tar; else copy_image; fi

install -d -m 0755 "$partial"/{proc,sys,dev,run,home}
install -d -m 1777 "$partial/tmp" "$partial/var/tmp"
[[ -L $partial/var/log ]] || mkdir -p "$partial/var/log"
# These come from the pod, and no link may be in their way.
for file in hosts resolv.conf; do
  if [[ -L $partial/etc/$file ]]; then rm "$partial/etc/$file"; fi
done
# Two installs at once wait for each other; apt's own default is to fail.
if [[ -d $partial/etc/apt/apt.conf.d ]]; then
  echo 'DPkg::Lock::Timeout "600";' >"$partial/etc/apt/apt.conf.d/90slipway-lock"
fi
chmod 0755 "$partial"
rm -f "$record.carried.new"
if [[ -n $carry_from ]]; then changes carry "$version" "$carry_from"; fi
sync --file-system "$partial"
printf '%s\n' "$stands_for" >"$record.new"
mv "$record.new" "$record"
mv "$record.manifest.new" "$record.manifest"
if [[ -n $carry_from ]]; then mv "$record.carried.new" "$record.carried"; else rm -f "$record.carried"; fi
mv -T "$partial" "$shared/versions/$version"
forget_tar
rm -f "$lock"
say "version $version is filled: $(du -sm --one-file-system "$shared/versions/$version" | cut -f1) MiB in $((SECONDS - began)) s"
