#!/usr/bin/env bash
# A login node: sackd, which keeps Slurm's configuration as slurmctld has it in /run/slurm/conf, and sshd on port 2222.
# sackd is started again when it ends, and sessions go on; when sshd ends, so does the pod.
set -euo pipefail
say() { printf 'login.sh: %s\n' "$*" >&2; }

install -d -m 0755 /run/slipway /run/sshd
install -d -o slurm -g slurm -m 0755 /run/slurm
install -d -m 0700 /run/slipway/ssh
install -m 0600 /etc/slipway/host-keys/ssh_host_ed25519_key /run/slipway/ssh/ssh_host_ed25519_key
[[ ! -e /etc/slipway/node-host-keys ]] || "${0%/*}/node-known-hosts.sh"
export SLURM_CONF=/run/slurm/conf/slurm.conf

keep_configuration() {
  local waited=0
  trap '[[ -z ${pid:-} ]] || kill -TERM "$pid" 2>/dev/null; exit 0' TERM
  while true; do
    if munge --no-input --output /dev/null 2>/dev/null && timeout 3 bash -c "exec 3<>/dev/tcp/$SLIPWAY_SLURMCTLD/6817" 2>/dev/null; then
      env -u SLURM_CONF setpriv --reuid slurm --regid slurm --clear-groups /usr/sbin/sackd -D --conf-server "$SLIPWAY_SLURMCTLD:6817" &
      pid=$!
      wait "$pid" || say "sackd ended with code $?; starting it again in 3 s"
      sleep 3 & wait $!
    else
      ((waited++ % 15)) || say "waiting for munged and for slurmctld at $SLIPWAY_SLURMCTLD:6817"
      sleep 1 & wait $!
    fi
  done
}

keep_configuration &
sackd_keeper=$!
/usr/sbin/sshd -D -e &
sshd=$!
trap 'kill -TERM "$sshd" "$sackd_keeper" 2>/dev/null || true' TERM INT
code=0
wait "$sshd" || code=$?
kill -TERM "$sackd_keeper" 2>/dev/null || true
exit "$code"
