"""Config of monitoring: whether the cluster's metrics are collected and served."""

from configs.models.fields import Model, Positive


class Monitoring(Model):
    """Metrics of the Slurm cluster for Prometheus."""

    accounts: Positive = 100
    """So many accounts, the largest, have series of their own; the others are summed up as the account `other`."""
