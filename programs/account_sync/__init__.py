"""Slurm's accounts, users and QOS kept as the config has them: the program of the `accounts` container beside slurmdbd (`run`)."""
