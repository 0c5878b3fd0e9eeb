"""slurmctld: the files it starts with, the watch over it, and its stop for another munge key."""
