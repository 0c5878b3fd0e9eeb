"""Checks Slurm's files with a real slurmctld before they are used, in a container that is thrown away. No pod runs it: previews do."""
