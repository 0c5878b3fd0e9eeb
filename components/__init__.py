"""The parts of a Slurm cluster as Pulumi components, one in each file."""
