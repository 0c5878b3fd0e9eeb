"""Lists the jobs that have nodes, over HTTP, for the NodeSet controller. Entry: run.py; what squeue prints is read in jobs.py."""
