#!/usr/bin/env bash
# A base with manuals, the ids and the release of Slurm that the daemons have.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
# Debian's image for containers drops manuals of all packages, for ever; this root is for people. What it dropped already is fetched again.
if [[ -e /etc/dpkg/dpkg.cfg.d/docker ]]; then
  rm /etc/dpkg/dpkg.cfg.d/docker
  apt-get update -qq
  mapfile -t packages < <(dpkg-query -W -f '${Package}\n')
  apt-get install -y -qq -o Dpkg::Use-Pty=0 --reinstall "${packages[@]}"
fi
# Debian's mark that pip is to install nothing beside its packages. Here pip installs into a user's home, or with sudo into /usr/local.
echo 'path-exclude=/usr/lib/python3*/EXTERNALLY-MANAGED' >/etc/dpkg/dpkg.cfg.d/slipway-pip

SLURM_SERIES=$(sed -n 's/^ARG SLURM_SERIES=//p' /tmp/slurm/Dockerfile)
export SLURM_SERIES
for each in 10-accounts 20-series 30-hip; do "/tmp/slurm/setup/$each.sh"; done
