#!/usr/bin/env bash
# Every 30 s: what slipway-login-session shows of the cluster to those who log in. Two small answers of slurmctld for all users together,
# whatever the number of jobs and nodes, and no login waits for them. Files in /run/slipway/login: cluster, jobs (user, running, pending).
set -euo pipefail
folder=/run/slipway/login
install -d -m 0755 "$folder"

ask() { curl --silent --fail --max-time 5 "http://$SLIPWAY_SLURMCTLD:6817/metrics/$1"; }

write() { # in one step
  cat >"$folder/$1.new"
  mv "$folder/$1.new" "$folder/$1"
}

show_partitions() { # a line is: slurm_partition_nodes_idle{partition="main"} 2
  awk -F '[{}"]' '
    $1 ~ /^slurm_partition_nodes(_idle|_alloc|_mixed)?$/ { count[$1, $3] = $NF + 0 }
    $1 == "slurm_partition_nodes" { names[++known] = $3; if (length($3) > width) width = length($3) }
    END {
      if (width < 9) width = 9
      printf "%-*s %9s %9s %9s %9s\n", width, "PARTITION", "IDLE", "IN USE", "OTHER", "NODES"
      for (i = 1; i <= known; i++) {
        name = names[i]; all = count["slurm_partition_nodes", name]; idle = count["slurm_partition_nodes_idle", name]
        used = count["slurm_partition_nodes_alloc", name] + count["slurm_partition_nodes_mixed", name]
        printf "%-*s %9d %9d %9d %9d\n", width, name, idle, used, all - idle - used, all
      }
    }'
}

show_jobs() { # a line is: slurm_user_jobs_running{username="alice"} 2
  awk -F '[{}"]' '
    $1 ~ /^slurm_user_jobs_(running|pending)$/ { count[$1, $3] = $NF + 0; users[$3] = 1 }
    END { for (user in users) print user, count["slurm_user_jobs_running", user] + 0, count["slurm_user_jobs_pending", user] + 0 }'
}

while true; do
  if partitions=$(ask partitions) && users=$(ask jobs-users-accts); then
    show_partitions <<<"$partitions" | write cluster
    show_jobs <<<"$users" | write jobs
    printf '%(%s)T\n' -1 | write read
  fi
  [[ -d /run/slipway/cgroup ]] || "${0%/*}/login-limits.sh" pam || true
  sleep 30 & wait $!
done
