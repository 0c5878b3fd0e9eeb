#!/usr/bin/env bash
# The packages of packages.txt, and of requirements.txt what Debian does not package.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
mapfile -t packages < <(grep -v '^#' /tmp/build/packages.txt | grep .)
# containernetworking-plugins: networks of containers' own, which those of jobs have none of; 67 MB.
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${packages[@]}" containernetworking-plugins-

if [[ -s /run/secrets/pip ]]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi
if [[ -s /run/secrets/certificates ]]; then export PIP_CERT=/run/secrets/certificates; fi
python3 -m pip install -q --no-cache-dir --disable-pip-version-check --root-user-action=ignore --only-binary=:all: \
  --requirement /tmp/build/requirements.txt
uv --version
