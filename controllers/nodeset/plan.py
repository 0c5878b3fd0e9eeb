"""Decides what to do for one set, from one observation of it. Pure. The laws of docs/explain/laws.md are in `plans`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.creations import plan_creations
from controllers.nodeset.plans.deadlines import Deadlines, plan_deadlines
from controllers.nodeset.plans.deletions import Deletions, find_unbound, plan_deletions
from controllers.nodeset.plans.disks import Disks, plan_disks
from controllers.nodeset.plans.drains import Drains, find_drain_reasons, plan_drains
from controllers.nodeset.plans.ghosts import Ghosts, find_ghosts
from controllers.nodeset.plans.labels import Labels, plan_labels
from controllers.nodeset.plans.leaving import find_leaving
from controllers.nodeset.plans.resumes import Resumes, plan_resumes
from controllers.nodeset.plans.rolls import Roll, describe_roll, find_outdated, find_resized, plan_roll, unavailable
from controllers.nodeset.plans.topology import Topologies, plan_topologies
from controllers.nodeset.plans.wanted import plan_wanted
from controllers.nodeset.plans.windows import Windows, plan_windows
from controllers.nodeset.repairs import RepairPlan, plan_repairs
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import ordinals_of
from slurm.reasons import REMEDY


@dataclass(frozen=True)
class Plan:
    """What to do now, in ordinals. Everything that is not named stays as it is."""

    wanted: frozenset[int] = frozenset()
    """Ordinals that should have a pod."""
    create: tuple[int, ...] = ()
    """Pods to create."""
    deletions: Deletions = field(default_factory=Deletions)
    labels: Labels = field(default_factory=Labels)
    disks: Disks = field(default_factory=Disks)
    drains: Drains = field(default_factory=Drains)
    resumes: Resumes = field(default_factory=Resumes)
    deadlines: Deadlines = field(default_factory=Deadlines)
    roll: Roll = field(default_factory=Roll)
    ghosts: Ghosts = field(default_factory=Ghosts)
    topologies: Topologies = field(default_factory=Topologies)
    windows: Windows = field(default_factory=Windows)
    repairs: RepairPlan = field(default_factory=RepairPlan)
    reasons: Mapping[int, str] = field(default_factory=dict[int, str])
    """For which reason of the controller's own nodes should be drained, by ordinal."""
    is_finished: bool = False
    """The set is being deleted and has no pod left: the finalizer may go."""

    @property
    def writes_to_slurm(self) -> bool:
        """True when some part is a request to Slurm."""
        parts = (self.drains, self.resumes, self.deadlines, self.topologies, self.windows)
        return any(part.writes_to_slurm for part in parts)

    @property
    def needs_fresh_reading(self) -> bool:
        """True when some part could hurt a job if the reading behind it were old."""
        return bool(self.deletions.free or self.repairs.machines) or self.writes_to_slurm or self.drains.forgets_records


def plan_nodeset(nodeset: NodeSetObject, observed: Observed) -> Plan:
    """The next step for a set. While Slurm is silent (`observed.nodes` is None) only missing pods and claims are created."""
    wanted, strategy = plan_wanted(nodeset, observed), nodeset.spec.update_strategy
    create = plan_creations(nodeset, observed, wanted)
    disks = plan_disks(nodeset, observed, wanted)
    is_finished = nodeset.metadata.deletion_timestamp is not None and not observed.pods and not observed.on_their_way
    if observed.nodes is None:
        drains, roll = Drains(drained_at=observed.drained_at), Roll(unavailable=len(unavailable(strategy, observed, wanted)))
        repairs = plan_repairs(nodeset, observed, wanted)
        return Plan(wanted, create, disks=disks, drains=drains, roll=roll, repairs=repairs, is_finished=is_finished)
    outdated = find_outdated(nodeset, observed, wanted)
    unbound = find_unbound(strategy, observed, wanted, outdated)
    bound = [worker for worker in outdated if worker.ordinal not in unbound]
    ghosts = find_ghosts(nodeset, observed, wanted, bound)
    resized = find_resized(observed, wanted, outdated)
    rolled = plan_roll(strategy, observed, wanted, [*bound, *resized])
    gone = find_leaving(nodeset, observed, wanted, rolled, ghosts)
    repairs = plan_repairs(nodeset, observed, wanted, gone)
    repaired = observed.pods.keys() & repairs.held
    leaving = {**dict.fromkeys(sorted(repaired), REMEDY), **gone}
    pods_to_keep = repaired.difference(gone, repairs.recreate).union(ordinals_of(resized))
    causes = find_drain_reasons(nodeset, observed, wanted, leaving, repairs)
    drains = plan_drains(nodeset, observed, wanted, causes, repairs)
    drained = [ordinal for ordinals in drains.drain.values() for ordinal in ordinals]
    return Plan(
        wanted,
        create,
        deletions=plan_deletions(nodeset, observed, leaving.keys() - pods_to_keep, unbound),
        labels=plan_labels(observed, ghosts),
        disks=disks,
        drains=drains,
        resumes=plan_resumes(nodeset, observed, {*causes, *drained}),
        deadlines=plan_deadlines(nodeset, observed, leaving, drains.drained_at, repairs.draining_since),
        roll=describe_roll(strategy, observed, wanted, outdated, unbound, resized),
        ghosts=ghosts,
        topologies=plan_topologies(nodeset, observed),
        windows=plan_windows(observed),
        repairs=repairs,
        reasons=causes,
        is_finished=is_finished,
    )
