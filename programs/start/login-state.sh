#!/usr/bin/env bash
# Every 30 s: what slipway-login-session shows of the cluster to those who log in. Two answers of slurmctld for all users together, and no login
# waits for them. Files in /run/slipway/login: cluster, jobs (user, running, pending).
set -euo pipefail
folder=/run/slipway/login
install -d -m 0755 "$folder"

ask() { curl --silent --fail --max-time 5 "http://$SLIPWAY_SLURMCTLD:6817/metrics/$1"; }

write() { # in one step
  cat >"$folder/$1.new"
  mv "$folder/$1.new" "$folder/$1"
}

show_partitions() { # a line is: main|2|idle~ - Slurm's own word for these nodes, so that a drained one is not idle, and its marks
  # Idle is what can take a job: a node that power saving has off (~), or has on its way (% #), too; one that is silent (*) or reboots not.
  awk -F '|' '
    !($1 in all) { names[++known] = $1; if (length($1) > width) width = length($1) }
    { all[$1] += $2 }
    $3 ~ /^(idle|planned)[-~!%#]*$/ { idle[$1] += $2 }
    $3 ~ /^(allocated|mixed|completing)/ { used[$1] += $2 }
    END {
      if (width < 9) width = 9
      printf "%-*s %9s %9s %9s %9s\n", width, "PARTITION", "IDLE", "IN USE", "OTHER", "NODES"
      for (i = 1; i <= known; i++) {
        name = names[i]
        printf "%-*s %9d %9d %9d %9d\n", width, name, idle[name], used[name], all[name] - idle[name] - used[name], all[name]
      }
    }'
}

show_jobs() { # a line is: slurm_user_jobs_running{username="alice"} 2
  awk -F '[{}"]' '
    $1 ~ /^slurm_user_jobs_(running|pending)$/ { count[$1, $3] = $NF + 0; users[$3] = 1 }
    END { for (user in users) print user, count["slurm_user_jobs_running", user] + 0, count["slurm_user_jobs_pending", user] + 0 }'
}

while true; do
  if partitions=$(timeout 20 sinfo --noheader --format '%R|%D|%T') && users=$(ask jobs-users-accts); then
    show_partitions <<<"$partitions" | write cluster
    show_jobs <<<"$users" | write jobs
    printf '%(%s)T\n' -1 | write read
  fi
  [[ -d /run/slipway/cgroup ]] || "${0%/*}/login-limits.sh" pam || true
  sleep 30 & wait $!
done
