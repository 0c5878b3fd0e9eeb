#!/usr/bin/env bash
# Turns a minimal Debian root into the Slurm image: fixed ids, packages, a version check, and nothing left over.
# Runs inside the image build, from the Dockerfile: setup.sh <expected Slurm series, such as 26.05>.
# Versions found go to /usr/share/slipway/versions (name=version lines); the build copies them into labels.
set -euo pipefail
series=$1
here=$(dirname "$(readlink -f "$0")")
export DEBIAN_FRONTEND=noninteractive

# Ids before packages: Debian's own scripts keep an account that exists. Files on claims belong to these numbers, so they never change.
account() { # name id home
  groupadd --system --gid "$2" "$1"
  useradd --system --uid "$2" --gid "$2" --home-dir "$3" --no-create-home --shell /usr/sbin/nologin "$1"
}
account slurm 64030 /var/lib/slurm
account munge 401 /var/lib/munge
account slurmrestd 402 /nonexistent
account mysql 403 /var/lib/mysql
account slipway-identity 405 /nonexistent

cat >/etc/dpkg/dpkg.cfg.d/slipway-no-docs <<'DPKG'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/doc/*/copyright
DPKG
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 0755 /usr/sbin/policy-rc.d

mapfile -t packages < <(grep -v '^#' "$here/packages.txt" | grep .)
apt-get update -qq
found=$(apt-cache show --no-all-versions slurmctld | sed -n 's/^Version: //p')
if [[ $found != "$series".* ]]; then
  echo "setup.sh: Debian offers Slurm $found; this image is for Slurm $series. Take a base whose archive has $series, or teach configs/ the new series and raise SLURM_SERIES." >&2
  exit 3
fi

# An empty package in place of what nothing here runs; `apt-get install` of the real one replaces it.
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
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${packages[@]}"

# Of Debian's mariadb-client the one program that backups need: the rest, with its Perl scripts, is 60 MB, and every worker would pull it.
(
  cd /tmp
  apt-get download -qq mariadb-client="$(dpkg-query -W -f '${Version}' mariadb-client-core)"
  dpkg-deb --fsys-tarfile mariadb-client_*.deb | tar -x -C / ./usr/bin/mariadb-dump
  rm mariadb-client_*.deb
  mariadb-dump --version
)

# An ssh client sends its own locale, which a job takes along. Each language has the data of C.UTF-8 under its name: glibc takes it for
# de_DE.UTF-8, and for regions that no list has, such as en_DE. The real ones are 240 MB (locales-all); once installed, they come first. `UTF-8`
# is what macOS sends.
(
  cd /tmp
  apt-get download -qq locales
  dpkg-deb --fsys-tarfile locales_*.deb | tar -x -O ./usr/share/i18n/SUPPORTED |
    sed -n 's/^\([a-z]*\)[_ .@].*/\1/p' | sort -u >languages
  (($(wc -l <languages) > 100)) || { echo "setup.sh: the list of languages in Debian's package locales has another form than it had" >&2; exit 3; }
  for language in $(<languages) UTF-8; do ln -s C.utf8 "/usr/lib/locale/$language"; done
  rm locales_*.deb languages
)

# What puts jobs and sessions into the shared root. The compiler and all that came with it go again.
before=$(dpkg-query -W -f '${Package}\n' | sort)
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends gcc make libc6-dev libslurm-dev libpam0g-dev
cp -r "$here/root" /tmp/root-build
make --silent -C /tmp/root-build install
mapfile -t build_only < <(comm -13 <(printf '%s\n' "$before") <(dpkg-query -W -f '${Package}\n' | sort))
apt-get purge -y -qq -o Dpkg::Use-Pty=0 "${build_only[@]}"
rm -rf /tmp/root-build

# Debian's example configuration would be read where ours is missing; its plugstack.conf names a glob that Slurm 26.05 rejects.
rm -rf /etc/slurm && mkdir -p /etc/slurm
rm -f /etc/munge/munge.key /etc/ssh/ssh_host_* /etc/ssh/sshd_config
rm -rf /var/lib/mysql /etc/mysql/mariadb.conf.d/*
install -m 0644 "$here/nsswitch.conf" /etc/nsswitch.conf
install -m 0644 "$here/sshd_config" /etc/ssh/sshd_config
install -m 0755 "$here/authorized-keys" /usr/local/sbin/slipway-authorized-keys
install -m 0644 "$here/sshd_config_node" /etc/ssh/sshd_config_node
install -m 0644 "$here/pam-node" /etc/pam.d/slipway-node
install -m 0644 "$here/ssh_config" /etc/ssh/ssh_config.d/slipway.conf
install -m 0755 "$here/ssh-node" /usr/lib/slipway/ssh-node
install -m 0755 "$here/su" /usr/lib/slipway/su
install -m 0755 "$here/login-session" /usr/local/sbin/slipway-login-session
install -d -m 0755 /var/lib/extrausers /etc/slipway /opt/slipway /shared

# Debian keeps OpenMPI to the loopback device, for its build machines; between nodes that is no network at all. OpenMPI's own rule is to leave it out.
sed -i '/^btl_tcp_if_include/d' /etc/openmpi/openmpi-mca-params.conf

# nfs-ganesha finds the file systems that it exports by this link, which Debian has from systemd and containerd does not make.
ln -s ../proc/self/mounts /etc/mtab

# New users' homes are made by their first login.
grep -q pam_mkhomedir /etc/pam.d/sshd || echo 'session required pam_mkhomedir.so umask=0077' >>/etc/pam.d/sshd
# The session gets its user's limits, and the cluster's state to show. Neither may cost a login.
grep -q slipway-login-session /etc/pam.d/sshd || echo 'session optional pam_exec.so quiet stdout type=open_session /usr/local/sbin/slipway-login-session' >>/etc/pam.d/sshd
# The last session line: what comes before still sees the pod.
grep -q pam_slipway_root /etc/pam.d/sshd || echo 'session required /usr/lib/slipway/pam_slipway_root.so' >>/etc/pam.d/sshd
# No kernel keyring or login record in a container; a missing one must not cost a login.
sed -i -E '/pam_(keyinit|loginuid|selinux|motd|mail|lastlog|wtmpdb)\.so/d' /etc/pam.d/sshd

mkdir -p /usr/share/slipway
for entry in slurm=slurmctld munge=munge openmpi=openmpi-bin openssh=openssh-server mariadb=mariadb-server-core nfs-ganesha=nfs-ganesha; do
  printf '%s=%s\n' "${entry%%=*}" "$(dpkg-query -W -f '${Version}' "${entry#*=}")"
done >/usr/share/slipway/versions

apt-get clean
# What mmdebstrap was told about this build's machine (proxy, date checks) is no business of the image.
rm -f /etc/apt/apt.conf.d/99mmdebstrap
rm -rf /var/lib/apt/lists/* /var/cache/* /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/sbin/policy-rc.d
find /var/log -type f -delete # the folders stay: programs expect those that their packages brought
find /usr/share/doc -mindepth 1 -not -name copyright -not -type d -delete
find / -xdev -name __pycache__ -type d -prune -exec rm -rf {} +
# Of Python's library the part that programs in pods import, compiled: a worker's start and stop take 0.06 s of CPU for it instead of 0.26 s.
python3 -EsSB -c 'import dataclasses, http.server, json, pathlib, re, resource, select, shutil, signal, socket, subprocess, sys, tempfile, threading, typing
print(*sorted(file for each in sys.modules.values() if (file := getattr(each, "__file__", None)) and file.endswith(".py")), sep="\n")' |
  python3 -m compileall -q --invalidation-mode unchecked-hash -i -
