"""Has changed files of Slurm reach slurmctld's pod at once (delivery.py), and says how far they are (progress.py)."""
