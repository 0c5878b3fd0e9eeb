#!/usr/bin/env bash
# No manuals: nobody reads them in a daemon's pod. The image of the shared root has them.
set -euo pipefail
cat >/etc/dpkg/dpkg.cfg.d/slipway-no-docs <<'DPKG'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/doc/*/copyright
DPKG
