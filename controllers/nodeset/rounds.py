"""What a round works with: the world that all rounds share, and the round of one set with its errors. Decides nothing."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from controllers.nodeset import pods as build
from controllers.nodeset.memory import SetMemory
from controllers.nodeset.retries import Retries
from controllers.nodeset.settings import Ec2Program
from controllers.nodeset.slurm_writer import NotFresh, NotLeading, SlurmWriter
from controllers.nodeset.structs import NodeSetObject, SlurmNode
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.expectations import Expectations
from controllers.runtime.informer import Informer
from controllers.runtime.structs import ConfigMap, Key, KubeNode, PartialObject, Pod
from controllers.runtime.writer import Outdated, Writer
from controllers.slurm.client import SlurmClient, SlurmError, SlurmRefused
from controllers.slurm.snapshot import Poller

SWEEP_S = 30.0
"""Seconds after which every set is looked at again, with or without news. Law 7."""
TOO_LATE_S = 30.0
"""Seconds of late requests to Slurm after which the status reports it and the set is looked at less often."""
DELETION_FRESH_S = 10.0
"""No pod is deleted on a reading that is older, in seconds."""

log = structlog.get_logger()


@dataclass
class World:
    """Where a round looks, and how it writes."""

    nodesets: Informer[NodeSetObject]
    pods: Informer[Pod]
    """With an index `nodeset`: (namespace, name of the set)."""
    machines: Informer[KubeNode]
    pins: Informer[ConfigMap]
    """The records of pinned sets."""
    claims: Informer[PartialObject]
    """All of the namespace, with an index `nodeset`, as the pods, and an index `stem`: (namespace, stem of the name)."""
    slurm_nodes: Informer[SlurmNode]
    """With an index `nodeset`, as the pods. Nothing is decided by them."""
    slurm: SlurmClient
    poller: Poller
    writer: Writer
    expectations: Expectations[Key]
    clock: Clock
    identity: str = "slipway"
    """Which process reports events."""
    retries: Retries = field(default_factory=Retries)
    """Nodes that did not come up."""
    refusals: Retries = field(default_factory=lambda: Retries(first_s=1, longest_s=300))
    """Pods that a kubelet refused or ended."""
    held: Callable[[], frozenset[str]] = frozenset
    """Slurm nodes that keep their size, against slurm.conf, until no job can be on them."""
    may_write: Callable[[], bool] = lambda: True
    """This process leads."""
    ec2: Ec2Program | None = None
    """Reboots and replaces machines; None where the stack has no such program."""
    blocks: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """By topology of blocks: the number of the block of each group of machines. A group has the same one in all sets."""
    waking: dict[str, float] = field(default_factory=dict[str, float])
    """Nodes that wait for a pod, and since when on the clock."""
    slurm_writer: SlurmWriter = field(init=False)

    def __post_init__(self) -> None:
        self.slurm_writer = SlurmWriter(self.slurm, self.clock, self.may_write)

    def machine(self, name: str) -> KubeNode | None:
        """A Kubernetes node."""
        return self.machines.get(("", name))

    def claims_of(self, nodeset: NodeSetObject) -> list[PartialObject]:
        """The claims with the set's labels, and those whose names its pods use."""
        space, name = nodeset.metadata.key
        stems = {build.claim_name(template.metadata.name, name) for template in nodeset.spec.volume_claim_templates}
        claims = [
            *self.claims.by_index("nodeset", (space, name)),
            *(claim for stem in stems for claim in self.claims.by_index("stem", (space, stem))),
        ]
        return list({claim.metadata.name: claim for claim in claims}.values())

    def now_text(self) -> str:
        """The time as Kubernetes writes it."""
        return datetime.fromtimestamp(self.clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Round:
    """A round of one set, and what went wrong in it."""

    world: World
    key: Key
    nodeset: NodeSetObject
    memory: SetMemory
    errors: list[str] = field(default_factory=list[str])
    has_no_reading: bool = False
    """Slurm was asked for a fresh reading and gave none."""
    asked_at: float = float("-inf")
    """When the reading was requested that the plan is made from, on the clock."""
    recorded: frozenset[int] = frozenset()
    """Ordinals whose drains this round has recorded: only these may be asked for."""
    is_late: bool = False
    """A request to Slurm was not sent, as the reading had grown old meanwhile."""
    reading_took_s: float = 0.0
    """How old the fresh reading was when it arrived."""
    came_too_late: bool = False
    """Something was not written, as the reading had grown old meanwhile."""
    has_more_objects: bool = False
    """Objects of Slurm nodes were left to the next round."""

    async def attempt(self, what: str, write: Awaitable[object]) -> bool:
        """Makes a write. An error is noted for the status, and the round continues with what does not depend on the write.

        True if the write may have been done: it was answered, or the answer was lost.
        """
        try:
            await write
        except NotFresh:
            self.came_too_late = self.is_late = True
            return False
        except (ApiError, SlurmError) as error:
            self.fail(what, error)
            return not isinstance(error, (NotLeading, SlurmRefused))
        return True

    def fail(self, what: str, error: Exception) -> None:
        """Notes an error."""
        self.errors.append(f"{what}: {error}")
        log.warning("failed", nodeset=self.nodeset.metadata.name, what=what, error=str(error))

    def fail_any(self, what: str, results: Iterable[object]) -> bool:
        """Notes the first error of a batch; True if there was one. An object that exists or is gone already does not count as an error."""
        for result in results:
            if isinstance(result, Outdated):
                self.came_too_late = True
                return False
            if isinstance(result, ApiError) and not isinstance(result, (Conflict, NotFound)):
                self.fail(what, result)
                return True
        return False

    def is_fresh_for_deletion(self) -> bool:
        """True while the reading of the round is recent enough to delete a pod: a job may have come since."""
        return self.world.clock.now() - self.asked_at <= DELETION_FRESH_S

    def is_fresh_for_slurm(self) -> bool:
        """True while the reading of the round is recent enough for a request to Slurm."""
        return self.world.slurm_writer.is_fresh(self.asked_at)

    def may_be_in_time(self) -> bool:
        """True unless another reading would be too late for a request, as all have been lately."""
        return self.memory.late_since is None or self.world.slurm_writer.is_quick(self.reading_took_s)

    def note_lateness(self) -> None:
        """Remembers whether requests to Slurm came too late, if the round had a reading."""
        if not self.has_no_reading:
            self.memory.note_late(self.is_late, self.world.clock.now())

    def drains(self) -> Mapping[int, float]:
        """When nodes of the set were drained."""
        return self.memory.drains_of(self.nodeset)

    def pod_key(self, ordinal: int) -> Key:
        """Namespace and name of a worker's pod."""
        return self.key[0], build.node_name(self.key[1], ordinal)

    def names(self, ordinals: Iterable[int]) -> list[str]:
        """Names of workers."""
        return [build.node_name(self.key[1], ordinal) for ordinal in ordinals]

    def text(self, ordinals: Iterable[int]) -> str:
        """Workers as Slurm writes them: `gpu-[0-3]`."""
        return build.range_text(self.key[1], ordinals)
