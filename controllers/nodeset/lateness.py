"""The condition of a set while Slurm or the API server is too slow for requests to follow their reading in time. Pure."""

from dataclasses import dataclass

from controllers.nodeset.structs import Condition


@dataclass(frozen=True)
class Lateness:
    """Every request to Slurm has come too late."""

    seconds: float
    """For so long."""
    reading_took_s: float
    """How old the last list of nodes was when it arrived."""
    limit_s: float
    """How old it may be for a request."""


def too_late(lateness: Lateness) -> Condition:
    """Names the slow side, Slurm or Kubernetes, and where to look."""
    took_s, limit_s = lateness.reading_took_s, lateness.limit_s
    blocked = f"Nothing could be written to Slurm for {lateness.seconds:.0f} s: no node is drained, given back or resumed."
    if took_s <= limit_s:
        cause = (
            f"Between the list of Slurm's nodes and a request, Kubernetes' API server takes more than the {limit_s:.0f} s that are allowed."
        )
        return Condition("Reconciled", "False", "KubernetesTooSlow", f"{blocked} {cause} Look at the load of the API server and of etcd.")
    cause = f"Slurm takes {took_s:.1f} s to list its nodes, and a request may follow within {limit_s:.0f} s only, as jobs start meanwhile."
    remedy = "Look at slurmctld's load (sdiag, its log, the CPU limit of its pod) and at slurmrestd's."
    return Condition("Reconciled", "False", "SlurmTooSlow", f"{blocked} {cause} {remedy}")
