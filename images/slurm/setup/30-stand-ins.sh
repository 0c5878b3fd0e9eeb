#!/usr/bin/env bash
# Empty packages in place of large ones that nothing here runs.
# Installing the real package later replaces its stand-in.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
stand_in() { # name version description [provides]
  mkdir -p /tmp/stand-in/DEBIAN
  cat >/tmp/stand-in/DEBIAN/control <<CONTROL
Package: $1
Version: $2
Architecture: $(dpkg --print-architecture)
Maintainer: Slipway
${4:+Provides: $4
}Description: $3
CONTROL
  dpkg-deb --build /tmp/stand-in /tmp/stand-in.deb >/dev/null
  dpkg -i /tmp/stand-in.deb >/dev/null
  rm -rf /tmp/stand-in /tmp/stand-in.deb
}
# UCX (for OpenMPI) depends on AMD's HIP runtime, and that on LLVM: 270 MB for two modules that UCX loads only beside an AMD driver. The
# version is just below the real one.
hip=$(apt-cache depends libucx0 | sed -n 's/^ *Depends: \(libamdhip64-[0-9]*\)$/\1/p')
if [[ -n $hip ]]; then
  version=$(apt-cache show --no-all-versions "$hip" | sed -n 's/^Version: //p')
  stand_in "$hip" "$version~slipway" "empty stand-in for AMD's HIP runtime; install the real package for ROCm-aware MPI"
fi
# nfs-ganesha speaks NFSv4 alone here: no portmapper, no bus, and no mount.nfs, which would be a setuid program in every login pod.
stand_in slipway-nfs-stand-in 1 "empty stand-in for what NFSv3 and D-Bus would need" "nfs-common, rpcbind, dbus-system-bus"
