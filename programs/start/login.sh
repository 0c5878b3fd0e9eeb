#!/usr/bin/env bash
# A login node: sackd, which keeps Slurm's configuration as slurmctld has it in /run/slurm/conf, and sshd on port 2222.
# Sessions are processes of their own. sackd is started again when it ends, and so is sshd as long as sessions are open; else its end is the
# pod's. A pod that is told to go takes no new sessions, and gives open ones SLIPWAY_DRAIN_GRACE_S seconds to end.
set -euo pipefail
say() { printf 'login.sh: %s\n' "$*" >&2; }

install -d -m 0755 /run/slipway /run/sshd
install -d -o slurm -g slurm -m 0755 /run/slurm
install -d -m 0700 /run/slipway/ssh
install -m 0600 /etc/slipway/host-keys/ssh_host_ed25519_key /run/slipway/ssh/ssh_host_ed25519_key
[[ ! -e /etc/slipway/node-host-keys ]] || "${0%/*}/node-known-hosts.sh"
"${0%/*}/login-limits.sh" || say "users get no limits of their own; see the lines above"
export SLURM_CONF=/run/slurm/conf/slurm.conf

keep_configuration() {
  # In a session an admin can become user slurm, and sackd has the pod's own root. Nobody looks into a process that has a capability which he has
  # not, and sessions never have SETPCAP. (A program that nobody may read does not help: one that was started again was looked into all the
  # same.) Where the pod has it not either, who is in a session becomes nobody else.
  local waited=0 apart=() has
  has=$(awk '/^CapBnd/ { print $2 }' /proc/self/status)
  ((0x$has >> 8 & 1)) && apart=(--inh-caps +setpcap --ambient-caps +setpcap)
  trap '[[ -z ${pid:-} ]] || kill -TERM "$pid" 2>/dev/null; exit 0' TERM
  while true; do
    if munge --no-input --output /dev/null 2>/dev/null && timeout 3 bash -c "exec 3<>/dev/tcp/$SLIPWAY_SLURMCTLD/6817" 2>/dev/null; then
      env -u SLURM_CONF setpriv --reuid slurm --regid slurm --clear-groups "${apart[@]}" /usr/sbin/sackd -D --conf-server "$SLIPWAY_SLURMCTLD:6817" &
      pid=$!
      wait "$pid" || say "sackd ended with code $?; starting it again in 3 s"
      sleep 3 & wait $!
    else
      ((waited++ % 15)) || say "waiting for munged and for slurmctld at $SLIPWAY_SLURMCTLD:6817"
      sleep 1 & wait $!
    fi
  done
}

open_sessions() { pgrep --count --exact sshd-session || true; } # of each two, and one of a login that is not through yet

tell() { # all who sit at a terminal; one that does not read must not hold us up
  local terminal
  for terminal in /dev/pts/[0-9]*; do
    timeout 1 bash -c 'printf "\r\n%s\r\n" "$1" >"$2"' tell "$1" "$terminal" 2>/dev/null || true
  done
}

wait_for_sessions() {
  local grace=${SLIPWAY_DRAIN_GRACE_S:-0} open told=
  local deadline=$((SECONDS + grace))
  while open=$(open_sessions) && ((open > 0 && SECONDS < deadline)); do
    if [[ -z $told ]]; then
      say "no new sessions; waiting up to $grace s for the open ones to end"
      tell "This login node ends in $((grace / 60)) min $((grace % 60)) s, and with it this session. A new login goes to another one. Jobs run on."
      told=1
    fi
    sleep 0.5 & wait $! || true
  done
  ((open == 0)) || say "$grace s are over: open sessions end with this pod"
}

keep_state() { # what sessions show of the cluster; a full disk for a minute must not end it for good
  trap '[[ -z ${pid:-} ]] || kill -TERM "$pid" 2>/dev/null; exit 0' TERM
  while true; do
    "${0%/*}/login-state.sh" &
    pid=$!
    wait "$pid" || say "login-state.sh ended with code $?; starting it again in 10 s"
    sleep 10 & wait $!
  done
}

# sshd reads such a file as its user, and none that others could have written (StrictModes). What is given here comes before sshd_config.
keys=()
[[ -z ${SLIPWAY_HOME_KEYS:-} ]] || keys=(-o AuthorizedKeysFile=.ssh/authorized_keys)

keep_configuration &
keepers=($!)
keep_state &
keepers+=($!)
stopping=
sshd=
trap 'stopping=1; kill -TERM "$sshd" 2>/dev/null || true' TERM INT
code=0
while [[ -z $stopping ]]; do
  LD_PRELOAD=/usr/lib/slipway/sshd_locale.so /usr/sbin/sshd -D -e "${keys[@]}" & # clients' locales: images/slurm/root/sshd.c
  sshd=$!
  [[ -z $stopping ]] || kill -TERM "$sshd" 2>/dev/null || true # the signal came in between
  code=0
  wait "$sshd" || code=$?
  if [[ -n $stopping ]]; then # the first wait ended with the signal; this one with sshd, which closes its port and leaves its sessions alone
    wait "$sshd" || true
    code=0
  elif (($(open_sessions))); then
    say "sshd ended with code $code; open sessions go on, and it is started again in 1 s"
    sleep 1 & wait $! || true
  else
    break
  fi
done
[[ -z $stopping ]] || wait_for_sessions
kill -TERM "${keepers[@]}" 2>/dev/null || true
exit "$code"
