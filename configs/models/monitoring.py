"""Config of monitoring: whether the cluster's metrics are collected and served."""

from pydantic import Field

from configs.models.fields import Model, Positive


class Monitoring(Model):
    """Metrics of the Slurm cluster for Prometheus."""

    accounts: Positive = Field(default=100, examples=[50])
    """So many accounts, the largest, have series of their own; the others are summed up as the account `other`."""
