"""Mail about jobs: slurmctld writes each mail to a folder (accept), and a container beside it sends them through an SMTP relay (run)."""
