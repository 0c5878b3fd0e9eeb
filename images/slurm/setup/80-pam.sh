#!/usr/bin/env bash
# What an ssh login passes through.
set -euo pipefail
# New users' homes are made by their first login.
grep -q pam_mkhomedir /etc/pam.d/sshd || echo 'session required pam_mkhomedir.so umask=0077' >>/etc/pam.d/sshd
# The session gets its user's limits, and the cluster's state to show. Neither may cost a login.
grep -q slipway-login-session /etc/pam.d/sshd || echo 'session optional pam_exec.so quiet stdout type=open_session /usr/local/sbin/slipway-login-session' >>/etc/pam.d/sshd
# The last session line: what comes before still sees the pod.
grep -q pam_slipway_root /etc/pam.d/sshd || echo 'session required /usr/lib/slipway/pam_slipway_root.so' >>/etc/pam.d/sshd
# No kernel keyring or login record in a container; a missing one must not cost a login.
sed -i -E '/pam_(keyinit|loginuid|selinux|motd|mail|lastlog|wtmpdb)\.so/d' /etc/pam.d/sshd
