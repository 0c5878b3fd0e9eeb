#!/bin/sh
# Health checks beside jobs, rendered by Slipway from cluster.healthChecks; do not edit. slurmd runs this as root: as HealthCheckProgram, and
# as Prolog and Epilog of users' jobs. A prolog that fails has Slurm drain the node, so it fails for a check's failure alone, which the
# program tells by its exit code. Where the program is missing, the worker's pod is older than this file, and its jobs run as before.
case "${SLURM_SCRIPT_CONTEXT:-interval} ${SLURMD_NODENAME%-*}" in
"interval h100" | "prolog_slurmd h100" | "interval cpu" | "prolog_slurmd cpu") ;;
*) exit 0 ;;
esac
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # slurmd gives it none
cd /opt/slipway && [ -r programs/node_checks/beside.py ] || exit 0
python3 -EsSB -m programs.node_checks.beside <<'END'
{
 "collector": [
  "h100-slurmctld",
  6823
 ],
 "nodeSets": {
  "cpu": [
   {
    "causeKind": "node",
    "check": "mounts",
    "contexts": [
     "interval",
     "prolog"
    ],
    "maxDrained": 1,
    "name": "mounts",
    "passes": 3,
    "settings": {
     "maxAnswerS": 20,
     "paths": [
      "/home",
      "/data"
     ]
    },
    "timeoutS": 30
   }
  ],
  "h100": [
   {
    "causeKind": "node",
    "check": "mounts",
    "contexts": [
     "interval",
     "prolog"
    ],
    "maxDrained": 6,
    "name": "mounts",
    "passes": 3,
    "settings": {
     "maxAnswerS": 20,
     "paths": [
      "/home",
      "/data",
      "/scratch"
     ]
    },
    "timeoutS": 30
   }
  ]
 },
 "slurmUser": 64030
}
END
[ $? -ne 9 ]
