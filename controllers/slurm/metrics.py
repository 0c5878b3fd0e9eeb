"""What `/metrics` shows of requests to slurmrestd and the list of jobs beside it."""

from prometheus_client import Histogram

REQUEST_SECONDS = Histogram(
    "slipway_slurm_request_seconds",
    "Time of a request to slurmrestd, or to the list of running jobs beside it, answered or given up.",
    ["request"],
    buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)


def request_name(method: str, target: str) -> str:
    """The label's value: the method and its subject, as in `get_nodes` and `post_jobs`; never a name or a number."""
    parts = [word for word in target.partition("?")[0].split("/") if word]
    about = parts[2] if parts[:1] == ["slurm"] and len(parts) > 2 else parts[0] if parts else "other"
    return f"{method.lower()}_{about}"
