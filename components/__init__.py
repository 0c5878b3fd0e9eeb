"""The parts of a Slurm cluster as Pulumi components, one a file; each is independent of where its arguments come from."""
