#!/usr/bin/env bash
# Our start of Alertmanager.
set -euo pipefail
install -m 0755 /tmp/build/alertmanager.sh /usr/bin/slipway-alertmanager
