#!/usr/bin/env bash
# Has a real slurmctld read sets of rendered files, with a real slurmdbd and MariaDB behind it. Started by render_lab.py in namespaces of its
# own (mount, host name, network, processes), so that nothing of it outlives it: render_lab.sh IMAGE_ROOT WORK CLUSTER.
# WORK/sets/<name>/ holds a set; WORK/out/<name>/ gets what Slurm made of it.
set -euo pipefail
trap 'echo "render_lab.sh: line $LINENO failed" >&2' ERR

outside() { # a root of our own over the image, an address that is not the loopback (Slurm looks up none for that), and our names
  local image=$1 work=$2 cluster=$3 root=$2/scratch/root
  mkdir -p "$work/scratch"
  mount -t tmpfs tmpfs "$work/scratch"
  mkdir -p "$work"/scratch/{upper,work,root}
  mount -t overlay overlay -o "lowerdir=$image,upperdir=$work/scratch/upper,workdir=$work/scratch/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mkdir -p "$root"/{sets,out,run/slurm,run/munge,run/mysqld,etc/slipway/jwt,opt/slipway/scripts}
  cp "${0%/*}/../../programs/start/prolog-slurmctld.sh" "$root/opt/slipway/scripts" # slurmctld does not start without it
  mount --bind "$work/sets" "$root/sets"
  mount --bind "$work/out" "$root/out"
  ip link set lo up
  ip link add lab0 type veth peer name lab1
  ip address add 198.18.255.1/24 dev lab0
  ip link set lab0 up
  ip link set lab1 up
  hostname "$cluster-slurmctld-0"
  cat >"$root/etc/hosts" <<HOSTS
127.0.0.1 localhost
198.18.255.1 $cluster-slurmctld-0 $cluster-slurmctld $cluster-slurmdbd-0 $cluster-slurmdbd $cluster-mariadb
HOSTS
  cp "$0" "$root/lab.sh"
  exec chroot "$root" /bin/bash /lab.sh inside "$cluster"
}

await() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  until "${@:2}" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

backing() { # munge, JWT key, database, slurmdbd under its own host name
  local cluster=$1 any
  any=$(find /sets -name slurmdbd.conf | sort | head -n 1)
  head -c 1024 /dev/urandom >/run/munge.key
  head -c 32 /dev/urandom >/etc/slipway/jwt/jwt_hs256.key
  chmod 400 /run/munge.key /etc/slipway/jwt/jwt_hs256.key
  mkdir -p /var/lib/munge /var/lib/mysql
  chown munge /run/munge.key /run/munge /var/lib/munge
  chown slurm /etc/slipway/jwt/jwt_hs256.key /run/slurm /out/*
  chown mysql /var/lib/mysql /run/mysqld
  setpriv --reuid munge --regid munge --clear-groups munged --foreground --force --num-threads 4 --key-file /run/munge.key --seed-file /var/lib/munge/seed \
    --pid-file /run/munge/munged.pid --log-file /var/lib/munge/log >/out/munged.log 2>&1 &
  mariadb-install-db --no-defaults --user=mysql --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db >/out/mariadb.log 2>&1
  mariadbd --no-defaults --user=mysql --datadir=/var/lib/mysql --socket=/run/mysqld/mysqld.sock --bind-address=198.18.255.1 --innodb-snapshot-isolation=OFF >>/out/mariadb.log 2>&1 &
  await 120 mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -e "SELECT 1"
  mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -e "CREATE DATABASE slurm_acct_db; GRANT ALL ON slurm_acct_db.* TO slurm@'%' IDENTIFIED BY 'lab'"
  { cat "$any"; echo "StoragePass=lab"; } >/etc/slurm/slurmdbd.conf
  chmod 600 /etc/slurm/slurmdbd.conf
  chown slurm /etc/slurm/slurmdbd.conf
  unshare --uts bash -c "hostname $cluster-slurmdbd-0; exec setpriv --reuid slurm --regid slurm --clear-groups slurmdbd -D" >/out/slurmdbd.log 2>&1 &
  await 120 grep -q "slurmdbd version .* started" /out/slurmdbd.log
}

read_set() { # starts slurmctld on one set and writes down what it says
  local name=$1 out=/out/$1 controller
  export SLURM_CONF=/sets/$name/slurm.conf
  rm -rf /var/spool/slurmctld
  install -d -o slurm /var/spool/slurmctld/state
  setpriv --reuid slurm --regid slurm --clear-groups slurmctld -D >"$out/log" 2>&1 &
  controller=$!
  # shellcheck disable=SC2317 # `await` calls it
  up() { ! kill -0 "$controller" 2>/dev/null || timeout 30 scontrol ping | grep -q "is UP"; }
  await 120 up || true
  if kill -0 "$controller" 2>/dev/null; then
    scontrol show config >"$out/config" 2>"$out/scontrol"
    scontrol --oneliner show node >"$out/nodes" 2>>"$out/scontrol" || true
    scontrol --oneliner show partition >"$out/partitions" 2>>"$out/scontrol"
    for page in livez readyz metrics; do
      curl --silent --max-time 30 --write-out '\n%{http_code}' "http://198.18.255.1:6817/$page" >"$out/$page"
    done
    kill -TERM $controller
  fi
  wait $controller && echo 0 >"$out/exit" || echo $? >"$out/exit"
}

if [[ $1 == inside ]]; then
  backing "$2"
  for set in /sets/*/; do
    read_set "$(basename "$set")"
  done
  exit 0
fi
outside "$@"
