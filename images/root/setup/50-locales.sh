#!/usr/bin/env bash
# Locales under the names that ssh clients send. Debian's package locales makes real ones: `sudo locale-gen de_DE.UTF-8`.
set -euo pipefail
/tmp/slurm/setup/50-locales.sh
