#!/usr/bin/env bash
# Our configuration in place of Debian's examples.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")/..
# Debian's example configuration would be read where ours is missing; its plugstack.conf names a glob that Slurm 26.05 rejects.
rm -rf /etc/slurm && mkdir -p /etc/slurm
rm -f /etc/munge/munge.key /etc/ssh/ssh_host_* /etc/ssh/sshd_config
rm -rf /var/lib/mysql /etc/mysql/mariadb.conf.d/*
install -m 0644 "$here/nsswitch.conf" /etc/nsswitch.conf
install -m 0644 "$here/sshd_config" /etc/ssh/sshd_config
install -m 0755 "$here/authorized-keys" /usr/local/sbin/slipway-authorized-keys
install -m 0644 "$here/sshd_config_node" /etc/ssh/sshd_config_node
install -m 0644 "$here/pam-node" /etc/pam.d/slipway-node
install -m 0644 "$here/ssh_config" /etc/ssh/ssh_config.d/slipway.conf
install -m 0755 "$here/ssh-node" /usr/lib/slipway/ssh-node
install -m 0755 "$here/su" /usr/lib/slipway/su
install -m 0755 "$here/login-session" /usr/local/sbin/slipway-login-session
install -d -m 0755 /var/lib/extrausers /etc/slipway /opt/slipway /shared

# Debian keeps OpenMPI to the loopback device, for its build machines; between nodes that is no network at all. OpenMPI's own rule is to leave it out.
sed -i '/^btl_tcp_if_include/d' /etc/openmpi/openmpi-mca-params.conf

# nfs-ganesha finds the file systems that it exports by this link, which Debian has from systemd and containerd does not make.
ln -s ../proc/self/mounts /etc/mtab

# What pulls images of containers, and saves them.
install -d -m 0755 /usr/lib/slipway/containers
install -m 0644 "$here"/containers/*.py /usr/lib/slipway/containers
