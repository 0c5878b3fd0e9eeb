"""NodeSet and SlurmNode objects as the API server gives them.

Their schemas, defaults and refusals are in components/crds. Some settings of a NodeSet are spelled only in the model of the stack file.
"""

from typing import Any, Literal

import msgspec

from controllers.nodeset.observed import RepairState, Step
from controllers.runtime.structs import ObjectMeta, PartialObject, Resource
from names import crds
from slurm.causes import Kind, Wish

NodeStateName = Literal["Up", "Draining", "Drained", "Down", "PoweringUp", "PoweringDown", "PoweredDown", "Unknown"]
"""State of a SlurmNode."""


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    pass


class TemplateMeta(_Struct, frozen=True):
    """Labels and annotations of the pods."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(_Struct, frozen=True):
    """The worker's pod; its spec is passed on as it is."""

    spec: dict[str, Any]
    metadata: TemplateMeta = TemplateMeta()


class UpdateStrategy(_Struct, frozen=True):
    """How a changed template reaches running nodes."""

    type: Literal["RollingUpdate", "OnDelete", "Maintenance"] = "RollingUpdate"
    max_unavailable: int | str = 1
    reservation: str | None = None
    min_ready_seconds: int = 0
    """A worker counts as available once it has been registered, with a ready pod, for so long."""


class Drain(_Struct, frozen=True):
    """What happens to jobs on a node that has to go."""

    action: Literal["Wait", "Requeue", "Cancel"] = "Wait"
    deadline_seconds: int | None = None


class ClaimMeta(_Struct, frozen=True):
    """Name and labels of a claim template."""

    name: str
    labels: dict[str, str] = {}


class ClaimTemplate(_Struct, frozen=True):
    """A claim for each node; its spec is passed on as it is."""

    metadata: ClaimMeta
    spec: dict[str, Any]


class ClaimRetention(_Struct, frozen=True):
    """What becomes of the claims."""

    when_deleted: Literal["Retain", "Delete"] = "Retain"
    when_scaled: Literal["Retain", "Delete"] = "Retain"


class Topology(_Struct, frozen=True):
    """A network by which Slurm places jobs."""

    name: str
    labels: tuple[str, ...]
    """Labels of the machines that say where a node is, from the top."""
    blocks: int | None = None
    """How many blocks topology.yaml has; None for a tree."""


class MachineCauseRule(_Struct, frozen=True):
    """Which conditions or taints of a Kubernetes node are causes of the Slurm nodes on it: either `condition` or `taint` is there."""

    condition: str = ""
    """Type of the conditions; `*` stands for any text."""
    status: Literal["True", "False"] = "True"
    """The status of such a condition that is a cause."""
    taint: str = ""
    """Key of the taints, likewise."""
    kind: Kind = "node"
    wish: Wish = "none"


class RemedyPolicy(_Struct, frozen=True):
    """What the controller may do about a node that stays faulty."""

    steps: tuple[Step, ...]
    causes: tuple[Kind, ...] = ("hardware", "node")
    confirmed_by: str | None = None
    """The health check that has to find a node failing, too, before the first step."""
    verified_by: tuple[str, ...] = ()
    """Health checks that have to pass after a step, before the node returns to service."""
    wait_seconds: int = 300
    machine_timeout_seconds: int = 3600
    max_per_day: int = 10
    systemic_percent: int = 10
    window_seconds: int = 600
    machines: Literal["DeleteNode", "EC2", "Webhook"] | None = None
    webhook: str | None = None


class NodeSetSpec(_Struct, frozen=True):
    """What the user wants. Either `replicas` (fixed), or `min` and `max` (elastic)."""

    cluster: str
    template: PodTemplate
    replicas: int | None = None
    min: int | None = None
    max: int | None = None
    ordinals: int | None = None
    update_strategy: UpdateStrategy = UpdateStrategy()
    drain: Drain = Drain()
    placement: Literal["Any", "Pinned"] = "Any"
    volume_claim_templates: tuple[ClaimTemplate, ...] = ()
    volume_claim_retention: ClaimRetention = ClaimRetention()
    topologies: tuple[Topology, ...] = ()
    label_features: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """With `label_features`: the features that slurm.conf gives all nodes of the set."""
    health_checks: tuple[str, ...] | None = None
    """Names of the health checks that look at the set's nodes; None where its deployer does not say."""
    check_jobs: tuple[str, ...] = ()
    """Names of those of them that run as jobs, which the controller may start."""
    checks_before_jobs: tuple[str, ...] = ()
    """Names of those of them that a machine has to pass before its node takes jobs of users."""
    machine_causes: tuple[MachineCauseRule, ...] = ()
    """The first that matches a condition or a taint decides. Conditions and taints without a match are not causes."""
    remedies: RemedyPolicy | None = None
    max_pods_in_flight: int = 500
    resume_timeout_seconds: int = 600

    @property
    def is_elastic(self) -> bool:
        """True when the set follows the queue."""
        return self.max is not None

    @property
    def asks_for_checks(self) -> bool:
        """True when nodes wait for checks that the controller starts."""
        remedies = self.remedies
        return bool(self.checks_before_jobs) or (remedies is not None and bool(remedies.verified_by or remedies.confirmed_by))

    @property
    def node_count(self) -> int:
        """How many nodes slurm.conf lists for the set: those of the ordinals below it."""
        largest = self.max if self.max is not None else self.replicas or 0
        return largest if self.ordinals is None else self.ordinals


class Condition(_Struct, frozen=True):
    """A condition, in Kubernetes' words."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class DrainRecord(_Struct, frozen=True):
    """Slurm nodes that the controller drained in the same second."""

    since: str
    """RFC 3339, by the controller's own clock."""
    nodes: str
    """Hostlist."""


class TakenStepRecord(_Struct, frozen=True):
    """A step of a repair."""

    step: Step
    at: str
    machine: str = ""


class RepairRecord(_Struct, frozen=True):
    """Slurm nodes whose repair is equally far: many in the state Suspect, else one."""

    nodes: str
    """Hostlist."""
    state: RepairState
    since: str
    began: str = ""
    pod: str = ""
    machine: str = ""
    boot: str = ""
    asked: str = ""
    steps: tuple[TakenStepRecord, ...] = ()


class NodeSetStatus(_Struct, frozen=True):
    """What is. Counts are of Slurm nodes, `replicas`, `wanted` and `updated` of pods."""

    observed_generation: int = 0
    phase: str = ""
    why: str = ""
    revision: str = ""
    selector: str = ""
    replicas: int = 0
    wanted: int = 0
    ready: int = 0
    updated: int = 0
    idle: int = 0
    allocated: int = 0
    draining: int = 0
    drained: int = 0
    down: int = 0
    powered_down: int = 0
    powering_up: int = 0
    drains: tuple[DrainRecord, ...] = ()
    """The drains of the controller's own: whose they are when Slurm has lost the reason, and since when jobs have had time to end."""
    repairs: tuple[RepairRecord, ...] = ()
    """How far the repairs are: written before each step is taken, so that any process can continue it."""
    systemic_since: str = ""
    """Since when too many nodes fail to blame any of them; empty while that is not so."""
    conditions: tuple[Condition, ...] = ()


class NodeSetObject(_Struct, frozen=True):
    """The object."""

    metadata: ObjectMeta
    spec: NodeSetSpec
    status: NodeSetStatus = NodeSetStatus()

    @property
    def awaits_checks(self) -> bool:
        """True when a check may look, in a reservation, at a node on which none has failed."""
        are_repaired = self.spec.asks_for_checks and any(repair.state != "InService" for repair in self.status.repairs)
        return are_repaired or bool(self.spec.checks_before_jobs)


class NodeCause(_Struct, frozen=True):
    """A cause as a SlurmNode has it; the fields are those of `slurm.causes.Cause`."""

    name: str
    kind: Kind = "node"
    source: str = ""
    evidence: str = ""
    since: str = ""
    """RFC 3339 in UTC."""
    owner: str = ""
    next: str = ""
    wish: Wish = "none"


class SlurmNodeStatus(_Struct, frozen=True):
    """What is known of one Slurm node."""

    state: NodeStateName = "Unknown"
    since: str = ""
    """Since when it has that state, RFC 3339 in UTC."""
    machine: str = ""
    node_set: str = ""
    summary: str = ""
    """Names of the causes, the most urgent first."""
    causes: tuple[NodeCause, ...] = ()


class SlurmNode(_Struct, frozen=True):
    """The object: a report for people and other programs. Only the times in it are ever read again."""

    metadata: ObjectMeta
    status: SlurmNodeStatus = SlurmNodeStatus()


NODESETS = Resource(crds.API_VERSION, "nodesets", "NodeSet", NodeSetObject)
NODESETS_WRITTEN = Resource(crds.API_VERSION, "nodesets", "NodeSet", PartialObject)
"""For writing: of an answer only the metadata is read, as a set whose present version cannot be decoded is written to as well."""
SLURM_NODES = Resource(crds.API_VERSION, "slurmnodes", "SlurmNode", SlurmNode)
