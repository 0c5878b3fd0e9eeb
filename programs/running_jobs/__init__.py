"""Lists jobs and nodes over HTTP. Entry: run.py; jobs.py reads the output of squeue and sinfo."""
