"""Starts slurmctld with the right files, watches it, and stops it for another munge key."""
