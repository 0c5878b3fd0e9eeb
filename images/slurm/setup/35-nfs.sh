#!/usr/bin/env bash
# An empty package in place of what only NFSv3 and D-Bus need.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/stand-in"
# nfs-ganesha speaks NFSv4 alone here: no portmapper, no bus, and no mount.nfs, which would be a setuid program in every login pod.
stand_in slipway-nfs-stand-in 1 "empty stand-in for what NFSv3 and D-Bus would need" "nfs-common, rpcbind, dbus-system-bus"
