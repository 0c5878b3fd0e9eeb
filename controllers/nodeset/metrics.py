"""What `/metrics` shows of node sets. Labels are bounded: sets, states of nodes, and causes, of which each check is one."""

from prometheus_client import Counter, Gauge, Histogram

WANTED = Gauge("slipway_nodeset_wanted", "Pods that should be there.", ["nodeset"])
PODS = Gauge("slipway_nodeset_pods", "Pods that are there.", ["nodeset"])
UNAVAILABLE = Gauge("slipway_nodeset_unavailable", "Wanted workers that take no jobs because of us or of Kubernetes.", ["nodeset"])
NODES = Gauge("slipway_nodeset_nodes", "Slurm nodes by state, as slurm.states counts them.", ["nodeset", "state"])
CAUSES = Gauge(
    "slipway_nodeset_causes",
    "Nodes that have a cause to be out of service, or soon; the wish `none` takes no jobs away.",
    ["nodeset", "cause", "wish"],
)
RECONCILE_SECONDS = Histogram(
    "slipway_reconcile_seconds",
    "Time of a round of one set, well ended or not.",
    buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
SYSTEMIC = Gauge("slipway_nodeset_systemic", "1 while nothing is repaired, as too many nodes of the set fail at once.", ["nodeset"])
REPAIRS = Gauge("slipway_nodeset_repairs", "Nodes by how far their repair is: Suspect, Draining, GivenUp and so on.", ["nodeset", "state"])
STEPS = Counter("slipway_nodeset_remedy_steps", "Steps of repairs that were begun.", ["nodeset", "step"])
PODS_CREATED = Counter("slipway_nodeset_pods_created", "Pods made.")
PODS_DELETED = Counter("slipway_nodeset_pods_deleted", "Pods deleted.")
SLURM_AGE = Gauge("slipway_slurm_reading_age_seconds", "Age of the last good reading of Slurm.")
POWER_UP_SECONDS = Histogram(
    "slipway_nodeset_power_up_seconds",
    "From a node seen waking to its pod made.",
    buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60),
)
