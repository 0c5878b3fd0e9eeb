#!/usr/bin/env bash
# The packages of packages.txt, and of mariadb-client one program.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
here=$(dirname "$(readlink -f "$0")")/..
mapfile -t packages < <(grep -v '^#' "$here/packages.txt" | grep .)
# containernetworking-plugins: networks of containers' own, which those of jobs have none of; 67 MB.
apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${packages[@]}" containernetworking-plugins-

# Of Debian's mariadb-client the one program that backups need: the rest, with its Perl scripts, is 60 MB, and every worker would pull it.
(
  cd /tmp
  apt-get download -qq mariadb-client="$(dpkg-query -W -f '${Version}' mariadb-client-core)"
  dpkg-deb --fsys-tarfile mariadb-client_*.deb | tar -x -C / ./usr/bin/mariadb-dump
  rm mariadb-client_*.deb
  mariadb-dump --version
)
