#!/usr/bin/env bash
# Removes versions of the shared root that nothing needs: not declared (SLIPWAY_ROOT_VERSIONS, in spaces) for SLIPWAY_ROOT_KEEP_DAYS, not current, and
# of no job that begins or runs. Unknown is needed: each job that slurmctld knows to be on nodes has to have its link in `jobs`, since on a volume that
# was full or read-only for a while a job begins without one. That is waited for while every version is in reach. Then a version is put out of reach,
# so that no further job begins in it, and they are looked at once more. Its lock is held then: a fill waits, or has it back where this was killed.
set -euo pipefail
say() { printf 'root-clean.sh: %s\n' "$*" >&2; }
shared=/shared
now=$(date +%s)
[[ -d $shared/versions && -d $shared/jobs ]] || exit 0
export SLURM_CONF_SERVER="${SLURM_CONF_SERVER:-$SLIPWAY_SLURMCTLD:6817}"
looks=${SLIPWAY_ROOT_LOOKS:-40}
unclear='' looked='' aside=''

users() { find "$shared/jobs" -maxdepth 1 -type l -lname "$1" | wc -l; }
is_declared() { [[ " $SLIPWAY_ROOT_VERSIONS " == *" $1 "* ]]; }

# The lock that a fill has, too; not waited for. root-fill.sh has the same, and says why the file is looked at again.
lock() {
  exec 9<>"$shared/filling/$1.lock"
  flock --nonblock 9 && [[ /dev/fd/9 -ef $shared/filling/$1.lock ]] || { exec 9>&-; return 1; }
}
unlock() { rm -f "$shared/filling/$1.lock"; exec 9>&-; }

put_back() {
  [[ -z $aside || ! -d $shared/filling/.aside-$aside ]] || mv -T "$shared/filling/.aside-$aside" "$shared/versions/$aside"
  aside=''
}
trap put_back EXIT
trap 'exit 143' TERM INT

# The numbers of all jobs that may have a version, one a line: none of Slurm's own user, whose jobs are outside the root, and none that waits for its
# nodes, as slurmctld lets no prolog run before they are up.
jobs_on_nodes() {
  local said
  said=$(timeout 60 squeue --noheader --all --states=RUNNING,SUSPENDED,STOPPED,SIGNALING,STAGE_OUT,CONFIGURING,COMPLETING --format '%A %U %T') || return 1
  awk -v outside="$(id -u slurm)" '$2 != outside && $3 != "CONFIGURING" { print $1 }' <<<"$said"
}

# Of a job that ended while the volume was read-only, or whose node was lost, the link is still there. Its number may be given out again.
forget_ended_jobs() {
  local said job state links
  local -A alive=()
  links=$(find "$shared/jobs" -maxdepth 1 -type l -printf '%f\n') # first: a job that begins now is not among them
  said=$(timeout 60 squeue --noheader --all --states=all --format '%A %T') || return 0
  while read -r job state; do
    [[ $state =~ ^(COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE|OUT_OF_MEMORY)$ ]] || alive[x$job]=1
  done <<<"$said"
  for job in $links; do
    [[ -z ${alive[x$job]:-} ]] || continue
    rm -f "$shared/jobs/$job"
    say "job $job has ended; its link is removed"
  done
}

# Sets `unclear` where it is not so. A job that begins has its link soon, and one that ends goes: so it is looked at so many times, for minutes.
look_at_every_job() {
  local tries jobs job first='' unknown
  for ((tries = 0; tries < $1; tries++)); do
    sleep $((tries < 15 ? tries * 2 : 30))
    jobs=$(jobs_on_nodes) || { unclear="slurmctld does not say which jobs run"; return; }
    [[ -n $first ]] || first="$jobs"$'\n' # for later ones the second look is there, and those that it finds later found the version gone
    unknown=()
    for job in $jobs; do
      if [[ ! -L $shared/jobs/$job && $'\n'$first == *$'\n'"$job"$'\n'* ]]; then unknown+=("$job"); fi
    done
    ((${#unknown[@]})) || return 0
  done
  unclear="nothing says which version these running jobs have: ${unknown[*]:0:10}"
}

# Asked once, while every version is in reach: it may take a quarter of an hour.
is_clear() {
  [[ -n $looked ]] || look_at_every_job "$looks"
  looked=yes
  [[ -z $unclear ]]
}

# With the version's lock.
remove() {
  local version=$1 mark=$2 number why
  # A fill takes the mark away, and this run may know an older list.
  if [[ ! -e $mark ]]; then
    say "version $version stays: it was declared again"
    return
  fi
  aside=$version
  mv -T "$shared/versions/$version" "$shared/filling/.aside-$version"
  look_at_every_job $((looks < 6 ? looks : 6)) # half a minute: those that it does not know by then keep the version for a day
  why=$unclear
  number=$(users "$version")
  current=$(readlink "$shared/current") || why="no version is current"
  if ((number)) || [[ $current == "versions/$version" ]]; then why="it was taken at this moment"; fi
  if [[ -n $why ]]; then
    put_back
    say "version $version stays: $why"
    return
  fi
  mv -T "$shared/filling/.aside-$version" "$shared/filling/.gone-$version"
  aside=''
  rm -f "$mark" "$shared/sources/$version" "$shared/sources/$version".{manifest,carried}
  say "version $version is removed"
}

forget_ended_jobs
rm -rf "$shared"/filling/.gone-* # what a run that was killed had begun to remove

# What such a run had not judged to the end comes back, as a job may have taken it. It is too late for that where the version was filled again.
for folder in "$shared"/filling/.aside-*/; do
  version=${folder%/}
  version=${version##*/.aside-}
  [[ -d $folder ]] && lock "$version" || continue
  if [[ -d $folder && ! -e $shared/versions/$version ]]; then
    mv -T "$folder" "$shared/versions/$version"
  elif [[ -d $folder ]] && is_clear && number=$(users "$version") && ((number == 0)); then
    mv -T "$folder" "$shared/filling/.gone-$version"
    rm -rf "$shared/filling/.gone-$version"
    say "version $version was filled again; what was put aside of it is removed"
  fi
  unlock "$version"
done

current=$(readlink "$shared/current") || { say "no version is current, so none is removed"; exit 0; }
for folder in "$shared"/versions/*/; do
  [[ -d $folder ]] || continue
  version=$(basename "$folder")
  mark=$shared/sources/$version.unused
  if is_declared "$version" || [[ $current == "versions/$version" ]]; then
    rm -f "$mark"
    continue
  fi
  # An empty one is of a full volume.
  [[ -s $mark ]] || echo "$now" >"$mark" || { say "version $version stays: the shared volume takes no note of it"; continue; }
  since=$(cat "$mark") || continue # a fill has just taken it away
  if [[ ! $since =~ ^[1-9][0-9]{9,11}$ ]]; then # a damaged or cut note says nothing of how long it has been so
    rm -f "$mark"
    say "version $version stays: $mark is damaged; its days are counted from now on"
    continue
  fi
  if ((now - since < SLIPWAY_ROOT_KEEP_DAYS * 86400)); then
    say "version $version is not declared any more; it stays for $((SLIPWAY_ROOT_KEEP_DAYS - (now - since) / 86400)) more days"
    continue
  fi
  number=$(users "$version")
  if ((number)); then
    say "version $version is used by $number jobs; it stays"
  elif [[ -e $shared/filling/.aside-$version ]]; then
    say "version $version stays: an older one of the name is put aside"
  elif ! is_clear; then
    say "version $version stays: $unclear"
  elif ! lock "$version"; then
    say "version $version stays: it is being filled"
  else
    remove "$version" "$mark"
    unlock "$version"
    rm -rf "$shared/filling/.gone-$version"
  fi
done
