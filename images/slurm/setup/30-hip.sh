#!/usr/bin/env bash
# An empty package in place of AMD's HIP runtime.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/stand-in"
# UCX (for OpenMPI) depends on it, and it on LLVM: 270 MB for two modules that UCX loads only beside an AMD driver. The version is just below
# the real one.
hip=$(apt-cache depends libucx0 | sed -n 's/^ *Depends: \(libamdhip64-[0-9]*\)$/\1/p')
if [[ -n $hip ]]; then
  version=$(apt-cache show --no-all-versions "$hip" | sed -n 's/^Version: //p')
  stand_in "$hip" "$version~slipway" "empty stand-in for AMD's HIP runtime; install the real package for ROCm-aware MPI"
fi
