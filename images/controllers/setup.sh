#!/usr/bin/env bash
# Turns a minimal Debian root into the image of the controllers: Python, the pinned packages, our programs, and nothing left over.
# Runs inside the image build, from the Dockerfile: setup.sh <folder of our packages>.
# Versions found go to /usr/share/slipway/versions (name=version lines); the build copies them into labels.
set -euo pipefail
programs=$1
here=$(dirname "$(readlink -f "$0")")
target=/opt/slipway
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
  --target "$target/packages" --requirement "$here/requirements.txt"
apt-get purge -y -qq --auto-remove python3-venv

(cd "$programs" && find . -name '*.py' -exec cp --parents -t "$target" {} +)
ln -s python3 /usr/bin/python
rm -rf "$target/packages/bin"
find "$target/packages" -type d -name tests -prune -exec rm -rf {} +
chmod -R a+rX "$target"
# The root is read-only when it runs, so what is not compiled now is compiled at every start. By hash: times do not count.
python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash "$target"

mkdir -p /usr/share/slipway
{
  printf 'python=%s\n' "$(dpkg-query -W -f '${Version}' python3)"
  for package in httpx2 lightkube msgspec; do grep -E "^$package==" "$here/requirements.txt" | sed 's/==/=/; s/ .*//'; done
} >/usr/share/slipway/versions

apt-get clean
# What mmdebstrap was told about this build's machine (proxy, date checks) is no business of the image.
rm -f /etc/apt/apt.conf.d/99mmdebstrap
rm -rf /tmp/venv /etc/ssl/certs/* /var/lib/apt/lists/* /var/cache/* /var/log/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*
find /usr/share/doc -mindepth 1 -not -name copyright -not -type d -delete
