"""What `/metrics` shows of Slurm's files and keys. Alert on `slipway_slurm_files_refused > 0`."""

from prometheus_client import Gauge

REFUSED = Gauge(
    "slipway_slurm_files_refused",
    "1 while slurmctld, or the slurmds, do not take the files of the last deployment, and run with those before.",
)

KEYS = Gauge("slipway_key_since_timestamp_seconds", "When slurmctld first had the key that it has now, in seconds since 1970.", ["key"])
