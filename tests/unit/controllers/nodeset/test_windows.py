"""Reservations for the announced maintenance of machines: they come and go with the announcement, and no kill leaves one behind."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.nodeset.machine_causes import announced_cause, read_begin
from controllers.nodeset.observe import machine
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.windows import Windows, find_orphans
from controllers.nodeset.structs import NODESETS
from controllers.nodeset.workers import Machine, WorkerNode, WorkerPod
from controllers.nodeset.writes.windows import release_orphans
from controllers.runtime.structs import PODS, KubeNode, ObjectMeta
from names import annotations, crds
from tests.support.controllers.nodeset.examples import NOW, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster
from tests.unit.controllers.nodeset.killer import killed_at

SOON, LATER = int(NOW) + 3600, int(NOW) + 7200
MACHINES = {
    "calm": Machine(),
    "soon": Machine(maintenance_begins=SOON + 0.5),
    "past": Machine(maintenance_begins=NOW - 60),
    "unread": Machine(is_announcement_unread=True),
}
AT_ONCE = int(NOW) + 10


def on(machine: str | None) -> tuple[WorkerPod | None, WorkerNode]:
    return (pod(machine=machine) if machine else None), node()


@pytest.mark.parametrize(
    ("worker", "reserved", "expected"),
    [
        pytest.param(on("soon"), {}, Windows({0: SOON}), id="announced"),
        pytest.param(on("soon"), {0: SOON}, Windows(), id="reserved already"),
        pytest.param(on("soon"), {0: LATER}, Windows({0: SOON}), id="another time"),
        pytest.param(on("soon"), {0: NOW - 60}, Windows(release=(0,)), id="put off after it has begun"),
        pytest.param(on("calm"), {0: SOON}, Windows(release=(0,)), id="called off"),
        pytest.param(on("calm"), {}, Windows(), id="nothing announced"),
        pytest.param(on("past"), {}, Windows({0: AT_ONCE}), id="goes on, and nothing is reserved"),
        pytest.param(on("past"), {0: LATER}, Windows({0: AT_ONCE}), id="goes on, and is reserved later"),
        pytest.param(on("past"), {0: NOW - 60}, Windows(), id="goes on"),
        pytest.param(on("past"), {0: AT_ONCE}, Windows(), id="goes on, and begins in a moment"),
        pytest.param(on("gone"), {0: SOON}, Windows(), id="machine unknown"),
        pytest.param(on("unread"), {0: SOON}, Windows(), id="no time is a change of nothing"),
        pytest.param(on("unread"), {}, Windows(), id="no time"),
        pytest.param(on(None), {0: SOON}, Windows(release=(0,)), id="pod gone"),
        pytest.param((pod(), node()), {0: SOON}, Windows(release=(0,)), id="pod on no machine yet"),
        pytest.param((pod(machine="soon"), None), {}, Windows(), id="node unknown"),
        pytest.param(on("soon"), None, Windows(), id="reservations not read"),
    ],
)
def test_node_is_reserved_while_its_machines_maintenance_is_announced(
    worker: tuple[WorkerPod | None, WorkerNode | None], reserved: dict[int, float] | None, expected: Windows
) -> None:
    observed = look(worker, machines=MACHINES, reserved=reserved)
    assert plan_nodeset(nodeset(replicas=1), observed).windows == expected


def test_removed_ordinal_is_released() -> None:
    assert plan_nodeset(nodeset(replicas=1), look(on("calm"), machines=MACHINES, reserved={5: SOON})).windows.release == (5,)


def test_nothing_is_reserved_while_slurm_is_silent() -> None:
    observed = look(on("soon"), silent=True, machines=MACHINES, reserved={})
    assert plan_nodeset(nodeset(replicas=1), observed).windows == Windows()


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        pytest.param("2030-01-15T10:00:00Z", datetime(2030, 1, 15, 10, tzinfo=UTC), id="UTC"),
        pytest.param("2030-01-15T10:00:00+01:00", datetime(2030, 1, 15, 9, tzinfo=UTC), id="with an offset"),
        pytest.param(" 2030-01-15T10:00 ", datetime(2030, 1, 15, 10, tzinfo=UTC), id="without one"),
        pytest.param("tomorrow", None, id="no time"),
    ],
)
def test_maintenance_annotation_is_a_time_and_a_cause_that_ends_no_job(text: str, begin: datetime | None) -> None:
    assert read_begin(text) == (begin.timestamp() if begin else None)
    cause = announced_cause(annotations.MAINTENANCE_BEGINS, text)
    assert (cause.name, cause.kind, cause.wish) == ("annotation/maintenance-begins", "maintenance", "none")
    assert ("is no time" in cause.evidence) == (begin is None)


@pytest.mark.parametrize(
    ("own", "of_ec2", "begins", "is_unread"),
    [
        pytest.param("", "", None, False, id="none"),
        pytest.param("2030-01-15T10:00Z", "", "2030-01-15T10:00Z", False, id="people's"),
        pytest.param("2030-01-16T10:00Z", "2030-01-15T10:00Z", "2030-01-15T10:00Z", False, id="the earlier"),
        pytest.param("soon", "2030-01-15T10:00Z", "2030-01-15T10:00Z", False, id="the one that can be read"),
        pytest.param("soon", "", None, True, id="none can be read"),
    ],
)
def test_the_earlier_of_two_announcements_counts(own: str, of_ec2: str, begins: str | None, is_unread: bool) -> None:
    about = {name: text for name, text in ((annotations.MAINTENANCE_BEGINS, own), (annotations.EC2_MAINTENANCE_BEGINS, of_ec2)) if text}
    seen = machine(KubeNode(ObjectMeta(name="m", annotations=about)))
    assert seen.maintenance_begins == (read_begin(begins) if begins else None)
    assert seen.is_announcement_unread == is_unread
    assert len(seen.causes) == len(about)


def at(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("sets", "orphans"),
    [
        pytest.param({"gpu"}, ("slipway-event-cpu-0", "slipway-event-gpu-big-1"), id="those-of-other-sets"),
        pytest.param({"gpu", "cpu", "gpu-big"}, (), id="none"),
        pytest.param(set[str](), ("slipway-event-cpu-0", "slipway-event-gpu-7", "slipway-event-gpu-big-1"), id="no-set-is-left"),
    ],
)
def test_reservations_of_sets_that_are_gone_are_orphans(sets: set[str], orphans: tuple[str, ...]) -> None:
    names = ("slipway-event-gpu-7", "slipway-event-gpu-big-1", "maintenance", "slipway-check-disk-cpu-0", "slipway-event-cpu-0")
    assert find_orphans(names, sets) == orphans


@pytest.mark.anyio
async def test_set_deleted_while_slurm_is_silent_leaves_no_reservation(cluster: Cluster) -> None:
    """Its machines are to be taken; all that it has left is in Slurm."""
    cluster.declare(nodes=2, min=0, max=2)
    cluster.slurm.words["gpu-0"] = {"IDLE", "CLOUD"}
    cluster.machine(cluster.place, begins=at(int(time.time()) + 3600))
    await cluster.rounds(4)
    assert set(cluster.slurm.reserved) == {"slipway-event-gpu-0"}
    cluster.slurm.reserved["slipway-event-cpu-0"] = "cpu-0", 0
    cluster.slurm.reserved["by carol"] = "gpu-0", 0
    await cluster.process.round()
    await release_orphans(cluster.process.world)
    assert set(cluster.slurm.reserved) == {"slipway-event-gpu-0", "by carol"}, "as the set is there"
    cluster.slurm.is_silent = True
    cluster.server.remove(PODS, ("slurm", "gpu-0"))  # its Kubernetes node was deleted
    cluster.server.objects.delete(cluster.server.objects.kind(crds.API_VERSION, "nodesets"), KEY)
    await cluster.rounds(3)
    assert KEY not in cluster.server.keys(NODESETS)
    await release_orphans(cluster.process.world)
    cluster.slurm.is_silent = False
    cluster.process.leads = False
    await cluster.process.round()
    await release_orphans(cluster.process.world)
    assert "slipway-event-gpu-0" in cluster.slurm.reserved, "another process leads"
    cluster.process.leads = True
    await release_orphans(cluster.process.world)
    assert set(cluster.slurm.reserved) == {"by carol"}


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(12))
async def test_next_process_reserves_and_releases_after_a_kill_at_any_write(cluster: Cluster, allowed: int) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    begin = int(time.time()) + 3600
    cluster.machine(cluster.place, begins=at(begin))
    await killed_at(cluster, allowed, rounds=4)
    await cluster.rounds(2)
    reserved: dict[str, Any] = {f"slipway-event-gpu-{number}": (f"gpu-{number}", begin) for number in range(2)}
    assert cluster.slurm.reserved == reserved
    cluster.machine(cluster.place, begins=at(begin + 60))
    await killed_at(cluster, allowed, rounds=4)
    await cluster.rounds(2)
    assert cluster.slurm.reserved == {name: (one, begin + 60) for name, (one, _) in reserved.items()}
    cluster.machine(cluster.place)
    await killed_at(cluster, allowed, rounds=4)
    await cluster.rounds(2)
    assert cluster.slurm.reserved == {}
