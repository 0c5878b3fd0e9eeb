#!/usr/bin/env bash
# By what ssh knows this cluster's nodes: the public half of the host key that all of them have. Without the file, ssh takes no name for a node's.
set -euo pipefail
file=/run/slipway/ssh_known_hosts
public=$(ssh-keygen -y -f /etc/slipway/node-host-keys/ssh_host_ed25519_key)
install -d -m 0755 "${file%/*}"
printf 'slipway-node %s\n' "$public" >"$file.new"
chmod 0644 "$file.new"
mv "$file.new" "$file"
