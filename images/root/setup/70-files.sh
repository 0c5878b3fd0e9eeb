#!/usr/bin/env bash
# Our files in place of Debian's.
set -euo pipefail
# Slurm's files come from slurmctld. Debian's would be read where ours are missing.
rm -rf /etc/slurm && mkdir -p /etc/slurm
rm -f /etc/munge/munge.key
install -m 0644 /tmp/slurm/nsswitch.conf /etc/nsswitch.conf
install -m 0644 /tmp/slurm/ssh_config /etc/ssh/ssh_config.d/slipway.conf
install -m 0755 /tmp/build/seff /usr/bin/seff
install -d -m 0755 /var/lib/extrausers /usr/lib/slipway
# What a researcher begins with: cp -r /usr/share/slipway/examples ~
mkdir -p /usr/share/slipway
cp -r /tmp/examples /usr/share/slipway/examples
chmod -R a+rX,go-w /usr/share/slipway/examples
# uv trusts the certificates that the root trusts, as pip and apt do; its own list lacks those of a company.
install -d -m 0755 /etc/uv
echo 'system-certs = true' >/etc/uv/uv.toml
install -m 0755 /tmp/build/slipway-info /usr/bin/slipway-info
install -m 0755 /tmp/build/crontab /usr/bin/crontab
for page in /tmp/build/man/*; do install -D -m 0644 "$page" "/usr/share/man/man${page##*.}/$(basename "$page")"; done
for name in mpiexec mpicxx mpic++ mpifort mpif90; do
  to=mpicc; [[ $name == mpiexec ]] && to=mpirun
  echo ".so man1/$to.1" >"/usr/share/man/man1/$name.1"
done
# The guides for researchers.
mkdir -p /usr/share/doc/slipway
cp -r /tmp/use/. /usr/share/doc/slipway/
chmod -R a+rX,go-w /usr/share/doc/slipway
# Every way in has the same PATH and `module`: bash reads the second file for `ssh HOST COMMAND`, before it returns, and zsh the third.
install -m 0644 /tmp/build/shell.sh /etc/profile.d/slipway.sh
sed -i '1i . /etc/profile.d/slipway.sh' /etc/bash.bashrc
install -m 0644 /tmp/build/welcome.sh /etc/profile.d/zz-slipway-welcome.sh
mkdir -p /etc/zsh
echo "emulate sh -c '. /etc/profile.d/slipway.sh'" >>/etc/zsh/zshenv
