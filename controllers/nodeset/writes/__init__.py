"""Carries out a plan, a part a file, as in `plans`. Thin: writes to Kubernetes and Slurm, notes what failed, and decides nothing."""
