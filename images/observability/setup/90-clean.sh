#!/usr/bin/env bash
# Versions for the image's labels (name=version lines; the build reads them), and nothing left over.
set -euo pipefail
mkdir -p /usr/share/slipway
dpkg-query -W -f '${Package}=${Version}\n' prometheus prometheus-alertmanager >/usr/share/slipway/versions

apt-get clean
# What mmdebstrap was told about this build's machine (proxy, date checks) is no business of the image.
rm -f /etc/apt/apt.conf.d/99mmdebstrap
rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /var/lib/prometheus /usr/share/man/* /usr/share/info/* /usr/share/locale/*
find /usr/share/doc -mindepth 1 -not -name copyright -not -type d -delete
