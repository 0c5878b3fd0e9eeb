"""The TCP ports of a cluster's pods: of Slurm's daemons, of others' servers, and of our own programs."""

SLURMCTLD, SLURMD, SLURMDBD, SLURMRESTD = 6817, 6818, 6819, 6820
MARIADB = 3306
NFS = 2049
PROMETHEUS, ALERTMANAGER = 9090, 9093
LOGIN_SSH = 2222
"""Of sshd in a login's pod, which may not bind port 22. The Service has 22."""
RUNNING_JOBS = 6821
"""Of the program beside slurmrestd that lists jobs and nodes: programs/running_jobs. For the controllers."""
QUEUE = 6824
"""The same for previews and status, which come through the API server's proxy. Its address is unknown, so the port is open to all."""
CONFIG_SYNC = 6822
"""Of slurmctld's sidecar that reports the progress of changed files: programs/config_sync."""
CHECKS = 6823
"""Of the program beside slurmctld that takes what checks beside jobs find: programs/node_checks/collect."""
CONTROLLER = 8080
"""Where programs of controllers/ serve metrics, and the page itself."""
EC2 = 8081
"""Where the program for EC2 takes steps of repairs."""
METRICS = 8081
"""Of the collector of metrics: programs/metrics."""
PROBE = 8082
"""Where our programs answer the kubelet's probes, and nothing else. The others of a pod are their own."""
GPU_METRICS = 9400
"""Of DCGM's exporter on workers, or of what plays it: programs/worker/gpu_metrics."""
