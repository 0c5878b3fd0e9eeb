#!/usr/bin/env bash
# What a user may use of a login pod. Prepares /run/slipway/cgroup, which only root enters: slipway-login-session makes a group for each user
# there, below the pod's own. Where the container may not (it has CAP_SYS_ADMIN for the shared root only), pam_limits takes their place.
# The limits are lines of /etc/slipway/login/limits: cpus=, memoryMiB=, tasks=. Changed ones count from a user's next login.
set -euo pipefail
say() { printf 'login-limits.sh: %s\n' "$*" >&2; }
top=/run/slipway/cgroup

# The mount must show the container's own group and nothing above: the groups made there must not be the machine's.
shows_own_group() { # mount controller
  local at own
  at=$(readlink -f "$1")
  own=$(awk -F: -v controller="$2" '{ n = split($2, each, ","); for (i = 1; i <= n; i++) if (each[i] == controller) print $3; if (controller == "" && $1 == 0) print $3 }' /proc/self/cgroup)
  [[ -n $own && $own == "$(awk -v at="$at" '$5 == at { print $4 }' /proc/self/mountinfo | tail -n 1)" ]]
}

show_writable() { # the container's cgroups are mounted read-only, and stay so; this is a second mount
  install -d -m 0755 "$2"
  mount --bind "$1" "$2" && mount -o remount,bind,rw "$2" && mkdir -p "$2/users"
}

prepare_v2() {
  local controller pid tries
  shows_own_group /sys/fs/cgroup "" && show_writable /sys/fs/cgroup "$top/v2" || return 1
  # A group with processes has no children with controllers, so ours move into a leaf; some may come in between, from an exec into the pod.
  mkdir -p "$top/v2/slipway"
  for ((tries = 0; tries < 20; tries++)); do
    local -a pids=()
    mapfile -t pids <"$top/v2/cgroup.procs"
    ((${#pids[@]})) || break
    for pid in "${pids[@]}"; do echo "$pid" >"$top/v2/slipway/cgroup.procs" 2>/dev/null || true; done
  done
  for controller in cpu memory pids; do
    echo "+$controller" >"$top/v2/cgroup.subtree_control" && echo "+$controller" >"$top/v2/users/cgroup.subtree_control" || return 1
  done
}

prepare_v1() {
  local controller
  for controller in cpu memory pids; do
    shows_own_group "/sys/fs/cgroup/$controller" "$controller" && show_writable "/sys/fs/cgroup/$controller" "$top/$controller" || return 1
  done
}

undo() {
  local part
  for part in v2 cpu memory pids; do
    ! mountpoint --quiet "$top/$part" || umount "$top/$part"
    [[ ! -d $top/$part ]] || rmdir "$top/$part"
  done
}

if [[ ${1:-} != pam ]]; then
  install -d -m 0700 "$top"
  kind=v1
  [[ ! -f /sys/fs/cgroup/cgroup.controllers ]] || kind=v2
  if said=$(prepare_$kind 2>&1); then
    say "each user has a cgroup ($kind)"
    exit 0
  fi
  undo || true
  rmdir "$top"
  say "no cgroups of users' own here (${said:-the mount shows more than this container}); pam_limits limits tasks of each user, and the address space of each process"
fi

at_most() { # FLAG-OF-ULIMIT VALUE: no more than the pod itself may have, else pam_limits would refuse every session
  local hard
  hard=$(ulimit -H "$1")
  if [[ $hard == unlimited ]] || (($2 <= hard)); then echo "$2"; else echo "$hard"; fi
}

if ! limits=$(cat /etc/slipway/login/limits) || grep -qvE '^([A-Za-z]+=[0-9]+)?$' <<<"$limits"; then
  [[ ! -e /etc/security/limits.d/slipway.conf ]] || { say "cannot read the limits; those read before stay"; exit 1; }
  say "cannot read the limits: each user gets 1 GiB a process and 100 tasks until they can be read"
  limits=$'memoryMiB=1024\ntasks=100'
fi

# For pam_limits, and again when the limits change. Slurm must not carry these limits on to jobs: slurm.conf, PropagateResourceLimitsExcept.
{
  while IFS='=' read -r key value; do
    case $key in
    tasks) echo "* - nproc $(at_most -u "$value")" ;;
    memoryMiB) echo "* - as $(at_most -v $((value * 1024)))" ;;
    cpus) ;; # a share of CPUs is nothing that pam_limits knows
    esac
  done <<<"$limits"
} >/etc/security/limits.d/slipway.conf.new
mv /etc/security/limits.d/slipway.conf.new /etc/security/limits.d/slipway.conf
