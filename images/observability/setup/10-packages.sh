#!/usr/bin/env bash
# Prometheus and Alertmanager. Prometheus' own pages need its JavaScript packages, which come along; its exporters do not.
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
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends prometheus prometheus-alertmanager
