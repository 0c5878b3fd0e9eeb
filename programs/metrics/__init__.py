"""Serves metrics of nodes and jobs to Prometheus. Entry: run.py; what each reading of Slurm becomes is decided in nodes.py, jobs.py and
usage.py."""
