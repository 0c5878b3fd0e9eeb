"""The TCP ports of a cluster's pods: of Slurm's daemons, of the database, and of our own programs."""

SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT, SLURMRESTD_PORT = 6817, 6818, 6819, 6820
MARIADB_PORT = 3306
RUNNING_JOBS_PORT = 6821
"""Of the program beside slurmrestd that lists jobs and nodes: programs/running_jobs. For the controllers."""
QUEUE_PORT = 6824
"""The same for previews and status, which come through the API server's proxy. Nobody knows its address, so the port is open to all."""
CONFIG_SYNC_PORT = 6822
"""Of slurmctld's sidecar that tells how far changed files are: programs/config_sync."""
CHECKS_PORT = 6823
"""Of the program beside slurmctld that takes what checks beside jobs find: programs/node_checks/collect."""
CONTROLLER_PORT = 8080
"""Where programs of controllers/ serve metrics, and the page itself."""
EC2_PORT = 8081
"""Where the program for EC2 takes steps of repairs."""
METRICS_PORT = 8081
"""Of the collector of metrics: programs/metrics."""
PROBE_PORT = 8082
"""Where our programs answer the kubelet's probes, and nothing else. The others of a pod are their own."""
GPU_METRICS_PORT = 9400
"""Of DCGM's exporter on workers, or of what plays it: programs/worker/gpu_metrics."""
