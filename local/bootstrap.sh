#!/usr/bin/env bash
# Makes .venv from the pinned requirements, with the command slipway. Installs Python's venv module, make's only needs and an ssh client from Debian when they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'slipway: %s\n' "$*" >&2; exit 1; }

missing=()
command -v python3 >/dev/null || missing+=(python3)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
command -v ssh-keygen >/dev/null || missing+=(openssh-client)
command -v git >/dev/null || missing+=(git)
if ((${#missing[@]})); then
  command -v apt-get >/dev/null || fail "these are missing and this is no Debian system: ${missing[*]}. Install them and run this again."
  [[ $(id -u) == 0 ]] || fail "these Debian packages are missing: ${missing[*]}. Run: sudo apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  DEBIAN_FRONTEND=noninteractive dpkg --force-confold --configure -a >/dev/null </dev/null || true  # what an install that was killed left: apt refuses all else until then
  apt-get update -qq && apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends "${missing[@]}" >/dev/null
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or later is needed; this is $(python3 -V)."

.venv/bin/python -c 'import pip' 2>/dev/null || python3 -m venv --clear .venv  # it may have been killed before
uv_pin=$(grep -E '^uv==' requirements-dev.txt)
.venv/bin/python -c 'import importlib.metadata as m, sys; sys.exit("uv==" + m.version("uv") != sys.argv[1])' "$uv_pin" 2>/dev/null ||
  .venv/bin/python -m pip install -q --disable-pip-version-check "$uv_pin"
.venv/bin/uv pip sync -q --python .venv/bin/python requirements-dev.txt
ln -sfn ../../cli/slipway .venv/bin/slipway
touch .venv/ready
