"""Keeps Slurm's accounts, users and QOS as the config has them: the `accounts` container beside slurmdbd. Entry: run.py."""
