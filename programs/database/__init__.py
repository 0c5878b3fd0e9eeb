"""How slurmdbd, backups and restores reach the accounting database, the cluster's own or another. Entry: run.py."""
