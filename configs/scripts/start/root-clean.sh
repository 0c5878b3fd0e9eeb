#!/usr/bin/env bash
# Removes versions of the shared root that nothing needs: not declared (SLIPWAY_ROOT_VERSIONS, in spaces) for SLIPWAY_ROOT_KEEP_DAYS, not current, and
# of no job that begins or runs. Unknown is needed: a version is first put out of reach, so that no further job begins in it. Then each job that
# slurmctld knows to be on nodes has to have its link in `jobs`: on a volume that was full or read-only for a while, a job begins without one.
set -euo pipefail
say() { printf 'root-clean.sh: %s\n' "$*" >&2; }
shared=/shared
now=$(date +%s)
[[ -d $shared/versions && -d $shared/jobs ]] || exit 0
export SLURM_CONF_SERVER="${SLURM_CONF_SERVER:-$SLIPWAY_SLURMCTLD:6817}"

users() { find "$shared/jobs" -maxdepth 1 -type l -lname "$1" | wc -l; }
is_declared() { [[ " $SLIPWAY_ROOT_VERSIONS " == *" $1 "* ]]; }

# The numbers of all jobs that have nodes, one a line; none of Slurm's own user, whose jobs are outside the root.
jobs_on_nodes() {
  local said
  said=$(timeout 60 squeue --noheader --all --states=RUNNING,SUSPENDED,STOPPED,SIGNALING,STAGE_OUT,CONFIGURING,COMPLETING --format '%A %U') || return 1
  awk -v outside="$(id -u slurm)" '$2 != outside { print $1 }' <<<"$said"
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

# Sets `unclear` where it is not so. A job that begins has its link soon, when its nodes are up, and one that ends goes: so it is looked at for minutes.
look_at_every_job() {
  local tries job first='' unknown
  for ((tries = 0; tries < ${SLIPWAY_ROOT_LOOKS:-40}; tries++)); do
    sleep $((tries < 15 ? tries * 2 : 30))
    jobs=$(jobs_on_nodes) || { unclear="slurmctld does not say which jobs run"; return; }
    [[ -n $first ]] || first="$jobs"$'\n' # the later ones found the version gone
    unknown=()
    for job in $jobs; do
      if [[ ! -L $shared/jobs/$job && $'\n'$first == *$'\n'"$job"$'\n'* ]]; then unknown+=("$job"); fi
    done
    ((${#unknown[@]})) || return 0
  done
  unclear="nothing says which version these running jobs have: ${unknown[*]:0:10}"
}

# Of a run that was killed: what it had not judged to the end comes back, as a job may have taken it; what it had begun to remove goes.
for folder in "$shared"/filling/.aside-*/; do
  [[ ! -d $folder ]] || mv -T "$folder" "$shared/versions/${folder##*/.aside-}"
done
rm -rf "$shared"/filling/.gone-*

forget_ended_jobs
unclear=
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
  if [[ -n $unclear ]]; then
    say "version $version stays: $unclear"
    continue
  fi
  mv -T "$shared/versions/$version" "$shared/filling/.aside-$version"
  look_at_every_job
  why=$unclear
  number=$(users "$version")
  current=$(readlink "$shared/current") || why="no version is current"
  if ((number)) || [[ $current == "versions/$version" ]]; then why="it was taken at this moment"; fi
  if [[ -n $why ]]; then
    mv -T "$shared/filling/.aside-$version" "$shared/versions/$version"
    say "version $version stays: $why"
    continue
  fi
  mv -T "$shared/filling/.aside-$version" "$shared/filling/.gone-$version"
  rm -rf "$shared/filling/.gone-$version"
  rm -f "$mark" "$shared/sources/$version" "$shared/sources/$version".{manifest,carried}
  say "version $version is removed"
done
