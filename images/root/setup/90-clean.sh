#!/usr/bin/env bash
# Versions for the image's labels (name=version lines; the build reads them), and nothing left over.
set -euo pipefail
mkdir -p /usr/share/slipway
for entry in slurm=slurm-client gcc=gcc openmpi=openmpi-bin mpich=mpich python=python3; do
  printf '%s=%s\n' "${entry%%=*}" "$(dpkg-query -W -f '${Version}' "${entry#*=}")"
done >/usr/share/slipway/versions

apt-get clean
# What mmdebstrap was told about this build's machine (proxy, date checks) is no business of the image.
rm -f /etc/apt/apt.conf.d/99mmdebstrap
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old
find /var/log -type f -delete # the folders stay: programs expect those that their packages brought
# policy-rc.d stays: a daemon's package that somebody installs starts nothing in a login session.
