"""Has changed files of Slurm and of accounts reach the daemons' pods at once (delivery.py), and says how far Slurm's are (progress.py)."""
