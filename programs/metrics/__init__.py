"""Serves metrics of nodes and jobs to Prometheus. Entry: run.py; nodes.py, jobs.py and usage.py turn readings of Slurm into metrics."""
