#!/usr/bin/env bash
# Makes folders on a volume for users other than root: SLIPWAY_FOLDERS, each as path:uid. Runs as root before a pod's containers, because the top of
# a host path or an NFS export belongs to root, and Kubernetes does not change that. Correct folders are left as they are.
set -euo pipefail
say() { printf 'own-folders.sh: %s\n' "$*" >&2; }
for entry in $SLIPWAY_FOLDERS; do
  folder=${entry%:*} uid=${entry#*:}
  [[ $(stat -c '%u' "$folder" 2>/dev/null) == "$uid" ]] && continue
  install -d -m 0755 "${folder%/*}" && install -d -o "$uid" -g "$uid" -m 0755 "$folder" ||
    { say "FAILED: cannot make $folder for uid $uid. Where root may not (NFS with root_squash), make it there by hand"; exit 1; }
done
