"""Has changed files of Slurm reach slurmctld's pod at once, instead of within the kubelet's minute. Entry: delivery.py."""
