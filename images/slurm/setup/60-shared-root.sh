#!/usr/bin/env bash
# What puts jobs and sessions into the shared root. The compiler and all that came with it go again.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
here=$(dirname "$(readlink -f "$0")")/..
before=$(dpkg-query -W -f '${Package}\n' | sort)
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends gcc make pkgconf libc6-dev libslurm-dev libpam0g-dev libpmix-dev
cp -r "$here/root" /tmp/root-build
make --silent -C /tmp/root-build install
mapfile -t build_only < <(comm -13 <(printf '%s\n' "$before") <(dpkg-query -W -f '${Package}\n' | sort))
apt-get purge -y -qq -o Dpkg::Use-Pty=0 "${build_only[@]}"
rm -rf /tmp/root-build
