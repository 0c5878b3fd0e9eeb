#!/usr/bin/env bash
# Our files in place of Debian's.
set -euo pipefail
# Slurm's files come from slurmctld. Debian's would be read where ours are missing.
rm -rf /etc/slurm && mkdir -p /etc/slurm
rm -f /etc/munge/munge.key
install -m 0644 /tmp/slurm/nsswitch.conf /etc/nsswitch.conf
install -m 0644 /tmp/slurm/ssh_config /etc/ssh/ssh_config.d/slipway.conf
install -m 0755 /tmp/build/seff /usr/bin/seff
install -d -m 0755 /var/lib/extrausers /usr/lib/slipway
# What a researcher begins with: cp -r /usr/share/slipway/examples ~
mkdir -p /usr/share/slipway
cp -r /tmp/examples /usr/share/slipway/examples
chmod -R a+rX,go-w /usr/share/slipway/examples
# uv trusts the certificates that the root trusts, as pip and apt do; its own list lacks those of a company.
install -d -m 0755 /etc/uv
echo 'system-certs = true' >/etc/uv/uv.toml
# screen's own folder is below /run, which a session has empty.
cat >/etc/profile.d/slipway-screen.sh <<'PROFILE'
[ -n "${SCREENDIR-}" ] || export SCREENDIR="/tmp/.screen-$(id -un)"
PROFILE
