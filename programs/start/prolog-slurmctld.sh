#!/bin/bash
# PrologSlurmctld: slurmctld runs it, as its user, for every job that got its nodes; the job begins when it ends. Without a node of an elastic set it
# ends at once; else when no node is on its way up any more, so that slurmctld starts the job then: by itself it looks only every 30 s.
# It never fails, as Slurm would requeue the job (a batch job, after two minutes) or kill it (srun). Ending early costs at most those 30 s.
# It does not ask slurmctld: programs/slurmctld does, once for all waiting jobs, and writes the answer into the file `unready`.
# Shell, because each job waits for it: 3.4 ms on a fixed set; the start of Python alone takes 20 ms.
[[ -r /etc/slurm/elastic ]] || exit 0
mapfile -t sets </etc/slurm/elastic
waits=
for set in "${sets[@]}"; do
  if [[ ",$SLURM_JOB_NODELIST" == *",$set-"[0-9[]* ]]; then waits=1; fi
done
[[ -n $waits ]] || exit 0

export PATH=/usr/sbin:/usr/bin:/sbin:/bin
run=/run/slurm
limit_s=$(sed -n 's/^ResumeTimeout=//p' /etc/slurm/slurm.conf)
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
exec {nap}<> <(:) # an empty pipe: reading it is a pause that needs no process

is_up() { # true if the answer UNREADY contains none of the job's nodes
  local node
  for node in "${nodes[@]}"; do
    if [[ " $1 " == *" $node "* ]]; then return 1; fi
  done
}

began=${EPOCHREALTIME/./} # in microseconds
heard=$began now=$began
while ((now - began < ${limit_s:-600} * 1000000 && now - heard < 30000000)); do # ends if slurmctld no longer answers
  : >"$run/waiting"
  if [[ -r $run/unready ]] && read -r asked unready <"$run/unready" && ((asked > began)); then # asked after the job got its nodes
    heard=$asked
    if is_up "$unready"; then exit 0; fi
  fi
  read -r -t 0.1 -u "$nap"
  now=${EPOCHREALTIME/./}
done
exit 0
