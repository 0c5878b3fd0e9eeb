#!/usr/bin/env bash
# Only the series of Slurm that configs/ renders for (SLURM_SERIES, such as 26.05), and no daemon started by its package.
set -euo pipefail
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 0755 /usr/sbin/policy-rc.d

apt-get update -qq
found=$(apt-cache show --no-all-versions slurm-client | sed -n 's/^Version: //p')
if [[ $found != "$SLURM_SERIES".* ]]; then
  echo "setup: Debian offers Slurm $found; this image is for Slurm $SLURM_SERIES. Take a base whose archive has $SLURM_SERIES, or teach configs/ the new series and raise SLURM_SERIES." >&2
  exit 3
fi
