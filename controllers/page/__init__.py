"""A read-only web page of one Slurm cluster: nodes with their causes, the queue, the last day. Entry: __main__.py; snapshot is pure."""
