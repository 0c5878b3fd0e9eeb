"""What a real slurmctld says of Slurm's files before they are used, in a container that is thrown away. No pod runs it: previews do."""
