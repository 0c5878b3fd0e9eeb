#!/usr/bin/env bash
# Only the series of Slurm that configs/ renders for (SLURM_SERIES, such as 26.05), without manuals, and no daemon started by its package.
set -euo pipefail
cat >/etc/dpkg/dpkg.cfg.d/slipway-no-docs <<'DPKG'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/doc/*/copyright
DPKG
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 0755 /usr/sbin/policy-rc.d

apt-get update -qq
found=$(apt-cache show --no-all-versions slurmctld | sed -n 's/^Version: //p')
if [[ $found != "$SLURM_SERIES".* ]]; then
  echo "setup: Debian offers Slurm $found; this image is for Slurm $SLURM_SERIES. Take a base whose archive has $SLURM_SERIES, or teach configs/ the new series and raise SLURM_SERIES." >&2
  exit 3
fi
