"""Config of the conditions and taints of Kubernetes nodes that count against the Slurm nodes on them. A built-in table always follows a
user's own rules.

Sources: node-problem-detector's config/*.json, and the documentation of the agents named beside the rows. An agent whose conditions are
good when they are True (EKS' end with Ready) has rows of its own.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import Flag, Matching, Model
from slurm.causes import EC2_INSTANCE, EC2_MAINTENANCE, EC2_RETIREMENT, EC2_SYSTEM

_PATTERN = r"[A-Za-z0-9*]([A-Za-z0-9*_./-]*[A-Za-z0-9*])?"
ConditionPattern = Annotated[StrictStr, AfterValidator(Matching(_PATTERN, "a type of conditions, * for any text", 316, "KernelDeadlock"))]
TaintPattern = Annotated[StrictStr, AfterValidator(Matching(_PATTERN, "a key of taints, * for any text", 316, "example.com/broken"))]


class MachineCause(Model):
    """What conditions or taints of a Kubernetes node say against the Slurm nodes on it, as long as they are there."""

    condition: ConditionPattern | None = Field(default=None, examples=["FabricDegraded"])
    """Type of the conditions, as in `kubectl describe node`; `*` stands for any text. Kubernetes' own conditions are never causes."""
    status: Flag = True
    """The status of such a condition that counts. False: for conditions that are good when they are True."""
    taint: TaintPattern | None = Field(default=None, examples=["example.com/maintenance"])
    """Key of the taints, likewise. A rule has either `condition` or `taint`."""
    kind: Literal["hardware", "node", "maintenance"] = "node"
    """hardware, node: a fault, which `remedies` may repair. maintenance: planned, or beyond repair, such as the end of a spot machine."""
    wish: Literal["none", "drain", "reboot", "replace"] = "none"
    """none: it is only reported. Maintenance with `drain` drains the node until it is taken back. A fault with `drain`, `reboot` or
    `replace` is repaired after `waitS`, by the steps of `remedies` that do as much or more. Without `remedies` it is only reported."""


def _faults(
    kind: Literal["hardware", "node"], wish: Literal["none", "drain", "reboot", "replace"], *types: str, status: bool = True
) -> tuple[MachineCause, ...]:
    return tuple(MachineCause(condition=each, status=status, kind=kind, wish=wish) for each in types)


def _taints(wish: Literal["none", "drain"], *keys: str) -> tuple[MachineCause, ...]:
    return tuple(MachineCause(taint=each, kind="maintenance", wish=wish) for each in keys)


EC2: tuple[MachineCause, ...] = (
    *(MachineCause(condition=each, kind="maintenance", wish="drain") for each in (EC2_RETIREMENT, EC2_MAINTENANCE)),
    # The host under an instance is AWS' own: another machine helps. The instance's own check fails for its system or network.
    *_faults("hardware", "replace", EC2_SYSTEM),
    *_faults("node", "reboot", EC2_INSTANCE),
)
"""Before BUILT_IN, in clusters with `ec2`. Without it, no program takes these conditions back: those that are left drain nothing."""

BUILT_IN: tuple[MachineCause, ...] = (
    # node-problem-detector.
    *_faults("node", "reboot", "KernelDeadlock"),
    *_faults("hardware", "reboot", "ReadonlyFilesystem", "XfsShutdown"),
    # EKS' node monitoring agent: good when True.
    *_faults("hardware", "replace", "AcceleratedHardwareReady", status=False),
    *_faults("node", "none", "*Ready", status=False),
    # AKS: scheduled events of Azure.
    MachineCause(condition="VMEventScheduled", kind="maintenance", wish="drain"),
    # All others, such as FrequentKubeletRestart: jobs may go on beside them.
    *_faults("node", "none", "*"),
    # AWS: its termination handler. A recommendation is not an interruption yet.
    *_taints("none", "aws-node-termination-handler/rebalance-recommendation"),
    *_taints("drain", "aws-node-termination-handler/*"),
    # Karpenter, the Cluster Autoscaler and GKE take the machine; Kubernetes and its cloud controllers say that it is off.
    *_taints("drain", "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "cloud.google.com/impending-node-termination"),
    *_taints("drain", "node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/shutdown"),
)
"""These follow the rules of the user: the first that matches decides. Most taints match no rule, and then do not count as a cause."""
