"""Annotations of our objects, of pods and of machines."""

# On a worker's pod.
DELETION_COST = "slipway.dev/deletion-cost"
"""Set by people: a whole number; of nodes that are alike, the cheaper goes first."""
DRAIN_REQUESTED = "slipway.dev/drain-requested"
"""Set by administrators or other programs: its node is drained for as long as it is there. Its text is the reason."""
TOPOLOGY_ADDRESS = "slipway.dev/topology-address"
"""Where its node is in the first topology, as jobs read it in SLURM_TOPOLOGY_ADDR. The pod has it in a volume."""
CHECKS_BEFORE_JOBS = "slipway.dev/checked-first"
"""`true` where it has drained its node before its slurmd started, until health checks have passed on the machine."""

# On a Kubernetes node.
MAINTENANCE_BEGINS = "slipway.dev/maintenance-begins"
"""Set by administrators or a cloud's agent: when maintenance of the machine begins, RFC 3339. Slurm's node is reserved from then on, so
that its jobs are warned of it."""
EC2_MAINTENANCE_BEGINS = "slipway.dev/ec2-maintenance-begins"
"""The same, of our program for EC2 alone, which takes it back. The earlier of the two counts."""
REASON = "slipway.dev/reason"
"""Set by administrators: why the machine is cordoned, in words that Slurm's users read."""

# On the pods of the control plane.
FILES = "slipway.dev/files"
"""The version of the ConfigMap that was announced to the pod's kubelet, and how often."""
FILES_HASH = "slipway.dev/files-hash"
"""On slurmctld's: the content of the files that the condition FILES_LIVE speaks of."""
CONFIG = "slipway.dev/config"
"""The content of a file that a program reads once, as it starts: a change rolls the pod."""

# On objects of the stack.
DECLARED_IN = "slipway.dev/declared-in"
"""On a node set: the ConfigMap of its namespace whose keys are the names of all declared sets. The set's controller deletes a set that left
the list."""
GUARD = "slipway.dev/guard"
"""Keeps the guard away: from an object, or from all of them where it is on a Secret of the record. Any value will do; the guard's own is
`stopped`."""
PROTECT = "slipway.dev/protect"
RETAIN = "slipway.dev/retain-on-delete"
"""Pulumi's two options, for `slipway up`, which keeps no state beside the objects."""
CLUSTER_IDENTIFIER = "slipway.dev/cluster-identifier"
"""At a stack's namespace and its kept values: the clusterIdentifier of the stack they belong to."""

# Marks that keep something as it was when an object was made, so that a preview sees when the stack file says otherwise.
STORAGE_CLASS = "slipway.dev/storage-class"
"""On a claim: the StorageClass that the stack file gives its disk."""
GENERATION = "slipway.dev/generation"
"""On a key's Secret: the generation that the stack file asks for, if it is not the first."""
KEPT = "slipway.dev/kept"
"""On a key's Secret: it keeps its key, whatever the generation."""
DESIRED = "slipway.dev/desired"
"""Tag of a node group of EKS: the machines that the stack file asks for at first."""


def key_generation(key: str) -> str:
    """On a pod that reads a key: the key's generation."""
    return f"slipway.dev/{key}-generation"
