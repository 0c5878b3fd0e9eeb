#!/usr/bin/env bash
# Python and the pinned packages.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
cat >/etc/dpkg/dpkg.cfg.d/slipway-no-docs <<'DPKG'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/doc/*/copyright
DPKG
apt-get update -qq
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends python3
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends python3-venv

# pip comes with Debian's venv and goes with it, and so do the certificates: no connection of ours is checked against them. Wheels only.
if [[ -s /run/secrets/pip ]]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi
if [[ -s /run/secrets/certificates ]]; then export PIP_CERT=/run/secrets/certificates; fi
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install -q --no-cache-dir --disable-pip-version-check --only-binary=:all: --no-compile \
  --target /opt/slipway/packages --requirement /tmp/build/requirements.txt
apt-get purge -y -qq --auto-remove python3-venv
