#!/usr/bin/env bash
# Starts Alertmanager with the flags that it is given. Its config comes from a ConfigMap; the user of the mail relay, which Alertmanager
# reads from no file, comes from the Secret.
set -euo pipefail
config=$(</etc/slipway/prometheus/alertmanager.yml)
if [[ $config == *@username@* ]]; then
  user=$(</etc/slipway/receivers/relay-credentials/username)
  config=${config//@username@/"${user//\'/\'\'}"} # it stands between single quotes
fi
(umask 077 && printf '%s\n' "$config" >/tmp/alertmanager.yml)
exec prometheus-alertmanager --config.file=/tmp/alertmanager.yml "$@"
