"""Slurm over REST: what its nodes and jobs are, and the few changes that controllers make. Knows nothing of Kubernetes."""
