#!/usr/bin/env bash
# Sidecar of slurmctld: when the kubelet swaps the files in /etc/slurm, has slurmctld read them (`scontrol reconfigure`), and says how it went.
# slurmctld takes over a good configuration and keeps its old one when it cannot; jobs run on either way, except where a node or a partition
# goes: Slurm ends its jobs, running ones and waiting ones, and requeues none (26.05.5). So such files wait until what goes is free: unknown is
# busy. slurmctld reads a copy on the claim, which gets a version only then: else its next start would take what its reconfigure may not.
set -euo pipefail
say() { printf 'reconfigure.sh: %s\n' "$*" >&2; }
trap 'exit 0' TERM INT # PID 1 has no default action for signals

claim=/var/spool/slurmctld
accepted=$claim/conf # made by slurmctld.sh
work=/tmp
own_reason="slipway: nodeset scale-in"
export SLURM_CONF=$accepted/slurm.conf LC_ALL=C
pause() { sleep "$1" & wait $!; } # so that a signal is heard at once
state() { readlink -f /etc/slurm/..data || echo /etc/slurm; } # the kubelet swaps this link last, in one step
some() { awk 'NR <= 5 { out = out (NR > 1 ? ", " : "") $0 } END { print out (NR > 5 ? " and " NR - 5 " more" : "") }'; }
call() { timeout 30 "$@"; }

names_in() { # FILE KEY: what the lines of that key name, one a line, sorted. Slurm tells no capitals in keys.
  local found
  found=$(sed -nE "s/^[[:space:]]*$2[[:space:]]*=[[:space:]]*(\"([^\"]*)\"|([^[:space:]#]+)).*/\2\3/Ip" "$1" | grep -vix default | paste -sd,) || true
  [[ -z $found ]] || call scontrol show hostnames "$found" | sort -u
}

states_in() { # KEY: names and states in an answer of scontrol. The first State= of a line is the state; others may stand in comments and reasons.
  awk -v start="$1=" 'index($0, start) == 1 && match($0, / State=[^ ]+/) { print substr($1, length(start) + 1), substr($0, RSTART + 7, RLENGTH - 7) }' "$work/answer"
}

read_slurm() { # nodes and partitions with their states, jobs with partitions and wanted nodes, as slurmctld has them; fails when it does not answer
  call scontrol --oneliner show nodes >"$work/answer" || return 1
  states_in NodeName | sort >"$work/nodes"
  [[ -s $work/nodes ]] || grep -q "No nodes in the system" "$work/answer" || return 1
  call scontrol --all --oneliner show partitions >"$work/answer" || return 1
  states_in PartitionName | sort >"$work/partitions"
  call squeue --all --noheader --format '%i|%P|%n' >"$work/jobs" || return 1
}

find_going() { # what slurmctld has and the new files have not; needs new-nodes and new-partitions
  read_slurm || return 1
  join -v 1 "$work/nodes" "$work/new-nodes" >"$work/going-nodes"
  join -v 1 "$work/partitions" "$work/new-partitions" >"$work/going-partitions"
}

is_free() { # STATE: no job can be on the node, and Slurm puts none there
  local flags="+$1+"
  [[ ! $flags =~ \+(ALLOCATED|MIXED|COMPLETING|UNDRAIN)\+ && $flags =~ \+(DRAIN|DOWN|POWERED_DOWN|POWERING_DOWN)\+ ]]
}

find_obstacles() { # what the files have to wait for, a line each
  local name state jobs wanted
  while read -r name state; do
    is_free "$state" || echo "node $name ($state)"
  done <"$work/going-nodes"
  # A job of several partitions needs one that stays.
  jobs=$(awk 'NR == FNR { going[$1]; next } { split($0, job, "|"); n = split(job[2], of, ","); for (i = 1; i <= n; i++) if (!(of[i] in going)) next; print job[1] }' \
    "$work/going-partitions" "$work/jobs" | some)
  [[ -z $jobs ]] || echo "jobs $jobs of partitions $(cut -d' ' -f1 "$work/going-partitions" | some)"
  wanted=$(cut -d'|' -f3 "$work/jobs" | grep -v '^$' | sort -u | paste -sd,) || true
  if [[ -s $work/going-nodes && -n $wanted ]]; then
    wanted=$(call scontrol show hostnames "$wanted" | sort -u | join - "$work/going-nodes" | cut -d' ' -f1 | some)
    [[ -z $wanted ]] || echo "jobs that ask for $wanted by name"
  fi
}

close_partitions() { # no new jobs; those that are there may still run
  local name
  awk '$2 == "UP" { print $1 }' "$work/going-partitions" >>"$work/closed-partitions"
  while read -r name; do
    call scontrol update PartitionName="$name" State=DRAIN || return 1
  done < <(awk '$2 == "UP" { print $1 }' "$work/going-partitions")
}

close_nodes() { # those that only power saving keeps jobs off: Slurm could wake one between our reading and the reconfigure
  awk '("+" $2 "+") !~ /\+(DRAIN|DOWN)\+/ { print $1 }' "$work/going-nodes" >"$work/closed-nodes"
  [[ ! -s $work/closed-nodes ]] || call scontrol update NodeName="$(paste -sd, "$work/closed-nodes")" State=DRAIN Reason="$own_reason"
}

open_nodes() {
  [[ ! -s $work/closed-nodes ]] || call scontrol update NodeName="$(paste -sd, "$work/closed-nodes")" State=UNDRAIN || true
  : >"$work/closed-nodes"
}

open_partitions() {
  local name
  while read -r name; do
    call scontrol update PartitionName="$name" State=UP || true
  done < <(sort -u "$work/closed-partitions")
  : >"$work/closed-partitions"
}

judge() { # FOLDER: succeeds when slurmctld may take these files now; else `waits_for` says why not, a line each
  waits_for="names of nodes and partitions that can be read"
  names_in "$1/slurm.conf" NodeName >"$work/new-nodes" && names_in "$1/slurm.conf" PartitionName >"$work/new-partitions" || return 1
  waits_for="an answer of slurmctld"
  find_going || return 1
  [[ -s $work/going-nodes || -s $work/going-partitions ]] || return 0
  close_partitions && find_going || return 1
  waits_for=$(find_obstacles)
  [[ -z $waits_for ]] || return 1
  waits_for="an answer of slurmctld"
  if close_nodes && find_going && waits_for=$(find_obstacles) && [[ -z $waits_for ]]; then return 0; fi
  open_nodes
  return 1
}

point_to() { # FOLDER: makes this copy the one that slurmctld reads
  ln -sfn "$1" "$accepted.link"
  mv -T "$accepted.link" "$accepted"
}

take_over() { # FOLDER: has slurmctld read these files; `answer` is what it said. On a refusal its copy is the old one again
  local copy old
  answer=
  old=$(readlink "$accepted")
  copy=$(mktemp -d "$accepted.XXXXXX") || return 1
  if chmod 0755 "$copy" && cp -L "$1"/* "$copy" && point_to "${copy##*/}"; then
    if answer=$(timeout 60 scontrol reconfigure 2>&1); then
      find "$claim" -maxdepth 1 -type d -name 'conf.*' ! -path "$copy" -exec rm -rf {} +
      return 0
    fi
    point_to "$old"
  fi
  rm -rf "$copy"
  return 1
}

# A change between slurmctld's start and ours would be missed: so the first version seen is told as well. It costs milliseconds.
applied= put_off= again_at=0 told=
once() { # TEXT: says it unless it was the last thing said
  [[ $told == "$1" ]] || say "$1"
  told=$1
}
: >"$work/closed-nodes"
: >"$work/closed-partitions"
while true; do
  now=$(state)
  if [[ ! -w $claim || ! -r $SLURM_CONF ]]; then
    ((SECONDS < 30)) || once "waiting for slurmctld's files in $accepted; the claim with slurmctld's state has to be mounted here, too"
  elif [[ $now != "$applied" ]] && [[ $now != "$put_off" || $SECONDS -ge $again_at ]]; then
    put_off=$now again_at=$((SECONDS + 2))
    if ! judge "$now"; then
      once "slurmctld keeps the files it has; those of $now wait for: $(some <<<"$waits_for")"
    elif take_over "$now"; then
      once "slurmctld runs with the files of $now"
      applied=$now put_off=
      : >"$work/closed-nodes"
      : >"$work/closed-partitions"
    else
      open_nodes
      open_partitions
      if [[ -z $answer || $answer == *"Unable to contact"* || $answer == *"timed out"* ]]; then
        once "slurmctld does not answer yet; trying until it does (${answer//$'\n'/; })"
      else
        # Its own log says which line. Once more each minute, should the fault be elsewhere (a name that does not resolve yet).
        once "REFUSED: slurmctld keeps its old configuration, the files of $now are no good: ${answer//$'\n'/; }"
        again_at=$((SECONDS + 60))
      fi
    fi
  fi
  pause 1
done
