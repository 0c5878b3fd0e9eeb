"""Mail about jobs: slurmctld leaves each in a folder (accept), and a container beside it sends them through an SMTP relay (run)."""
