#!/usr/bin/env bash
# sshd of a worker, for users with a job here. programs/worker starts it, and starts it again; each session is a process of its own and goes on.
set -euo pipefail
# By what ssh knows this cluster's nodes: the public half of the host key that all of them have. Without the file, ssh takes no name for a node's.
known=/run/slipway/ssh_known_hosts
public=$(ssh-keygen -y -f /etc/slipway/node-host-keys/ssh_host_ed25519_key)
printf 'slipway-node %s\n' "$public" >"$known.new"
chmod 0644 "$known.new"
mv "$known.new" "$known"
install -d -m 0755 /run/sshd
install -d -m 0700 /run/slipway/ssh
install -m 0600 /etc/slipway/node-host-keys/ssh_host_ed25519_key /run/slipway/ssh/ssh_host_ed25519_key
# The worker is shielded from the kernel's out-of-memory killer; a session must not be.
echo 0 >/proc/self/oom_score_adj || true
export LD_PRELOAD=/usr/lib/slipway/sshd_locale.so # clients' locales: images/slurm/root/sshd.c
exec /usr/sbin/sshd -D -e -f /etc/ssh/sshd_config_node
