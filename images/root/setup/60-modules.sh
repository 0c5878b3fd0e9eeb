#!/usr/bin/env bash
# Both kinds of MPI side by side, and a tree of modules to add to.
set -euo pipefail
# Debian keeps OpenMPI to the loopback device, for its build machines; between nodes that is no network at all.
sed -i '/^btl_tcp_if_include/d' /etc/openmpi/openmpi-mca-params.conf
for kind in openmpi mpich; do
  bin=/opt/mpi/$kind/bin
  mkdir -p "$bin"
  for program in /usr/bin/*."$kind"; do ln -s "$program" "$bin/$(basename "$program" ".$kind")"; done
  [[ -x $bin/mpicc && -x $bin/mpirun ]] || { echo "setup: Debian's $kind has no mpicc.$kind or no mpirun.$kind" >&2; exit 3; }
done
# mpirun of MPICH looks for its helpers beside itself.
for program in /usr/bin/hydra_*; do ln -s "$program" /opt/mpi/mpich/bin/; done
cp -r /tmp/build/modulefiles /opt/modulefiles
chmod -R a+rX /opt/modulefiles
sed -i '1i /opt/modulefiles' /etc/lmod/modulespath
# A login shell begins with Debian's own PATH, and believes what it inherits of loaded modules: a batch script that begins with `#!/bin/bash -l`
# would have the list of the session that submitted it, and none of the programs. After lmod.sh, which defines `module`.
cat >/etc/profile.d/slipway-modules.sh <<'PROFILE'
[ -z "${LOADEDMODULES-}" ] || module update || true
PROFILE
