"""The objects that say how each Slurm node is: which are written and when, then whole rounds against an API server in memory."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.causes import rfc3339
from controllers.nodeset.plans.slurm_nodes import MOST_AT_ONCE, describe, plan_slurm_nodes
from controllers.nodeset.pods import build_slurm_node
from controllers.nodeset.rounds import SWEEP_S
from controllers.nodeset.schedule import SOON_S
from controllers.nodeset.structs import NODESETS, SLURM_NODES, SlurmNode, SlurmNodeStatus
from controllers.runtime.structs import ObjectMeta, OwnerReference
from slurm.causes import Cause
from slurm.check_results import FAILED, PASSED, CheckResult, Failure, with_result
from tests.support.controllers.nodeset.examples import BUSY, IDLE, NOW, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster
from tests.support.fakes.clock import eventually
from tests.support.fakes.requests import Failure as Broken

EARLIER, NOW_TEXT = rfc3339(NOW - 60), rfc3339(NOW)
SET = nodeset(replicas=1)
CORDON = Cause("cordon", "maintenance", "Kubernetes", "m is cordoned", "administrator of Kubernetes", "kubectl uncordon m")
DISK = Cause("check/disk", "node", "health check disk", "full", "health check disk", "it runs again", since=EARLIER)
NONE: tuple[Cause, ...] = ()
DRAINED = look((pod(), node("IDLE CLOUD DRAIN")))


def stored(observed: Observed, causes: tuple[Cause, ...] = NONE, owner: str = "u", **fields: Any) -> SlurmNode:
    """The object of gpu-0 as a controller has written it a minute ago."""
    earlier = look(*((observed.pods.get(0), node) for node in (observed.nodes or {}).values()), now=NOW - 60)
    written = describe(SET, earlier, 0, causes, SlurmNodeStatus())
    owners = (OwnerReference("slipway.dev/v1alpha1", "NodeSet", "gpu", owner, controller=True),)
    meta = ObjectMeta(name="gpu-0", namespace="slurm", owner_references=owners)
    return SlurmNode(meta, SlurmNodeStatus(**{**{name: getattr(written, name) for name in written.__struct_fields__}, **fields}))


@pytest.mark.parametrize(
    ("observed", "causes", "there", "at_once", "at_a_sweep"),
    [
        pytest.param(look(IDLE), NONE, None, False, True, id="missing-without-a-cause"),
        pytest.param(look(IDLE), (CORDON,), None, True, True, id="missing-with-a-cause"),
        pytest.param(look((None, node())), (CORDON,), None, True, True, id="cause-without-a-pod"),
        pytest.param(look(IDLE), NONE, stored(look(IDLE)), False, False, id="as-it-should-be"),
        pytest.param(look(IDLE), (CORDON,), stored(look(IDLE), (CORDON,)), False, False, id="as-it-should-be-with-a-cause"),
        pytest.param(look(BUSY), NONE, stored(look(IDLE)), False, False, id="idle-and-busy-are-both-up"),
        pytest.param(DRAINED, NONE, stored(look(IDLE)), False, True, id="other-state"),
        pytest.param(look((pod(machine="m"), node())), NONE, stored(look(IDLE)), False, True, id="other-machine"),
        pytest.param(DRAINED, (CORDON,), stored(look(IDLE), (CORDON,)), True, True, id="other-state-under-the-same-cause"),
        pytest.param(look(IDLE), (CORDON, DISK), stored(look(IDLE), (CORDON,)), True, True, id="another-cause"),
        pytest.param(look(IDLE), NONE, stored(look(IDLE), (CORDON,)), True, True, id="cause-is-lifted"),
        pytest.param(
            look(IDLE), (DISK, CORDON), stored(look(IDLE), (CORDON, DISK), summary="check/disk, cordon"), False, False, id="order"
        ),
        pytest.param(look(IDLE), NONE, stored(look(IDLE), owner="of an earlier set"), False, True, id="other-owner"),
    ],
)
def test_changed_causes_are_written_at_once_and_all_else_at_a_sweep(
    observed: Observed, causes: tuple[Cause, ...], there: SlurmNode | None, at_once: bool, at_a_sweep: bool
) -> None:
    objects = {} if there is None else {0: there}
    for is_sweep, expected in ((False, at_once), (True, at_a_sweep)):
        made = plan_slurm_nodes(SET, observed, {0: causes} if causes else {}, objects, {}, is_sweep)
        assert (made.apply.keys() == {0}) == expected, "sweep" if is_sweep else "at once"
        assert made.delete == ()


@pytest.mark.parametrize(
    ("change", "is_written"),
    [
        pytest.param({"evidence": "m is cordoned: fans"}, True, id="evidence"),
        pytest.param({"wish": "none"}, True, id="wish"),
        pytest.param({"kind": "hardware"}, True, id="kind"),
        pytest.param({"next": "wait"}, False, id="what-happens-next"),
        pytest.param({"since": NOW_TEXT}, False, id="since"),
    ],
)
def test_what_of_a_cause_is_written_at_once(change: dict[str, Any], is_written: bool) -> None:
    fields = {name: getattr(CORDON, name) for name in ("name", "kind", "source", "evidence", "owner", "next", "wish", "since")}
    causes, objects = {0: (Cause(**{**fields, **change}),)}, {0: stored(look(IDLE), (CORDON,))}
    assert (plan_slurm_nodes(SET, look(IDLE), causes, objects, {}, is_sweep=False).apply.keys() == {0}) == is_written
    assert plan_slurm_nodes(SET, look(IDLE), causes, objects, {}, is_sweep=True).apply.keys() == {0}


def test_times_are_kept_as_long_as_state_and_cause_are_the_same() -> None:
    before = stored(DRAINED, (CORDON,)).status
    assert (before.since, before.causes[0].since) == (EARLIER, EARLIER)
    after = describe(SET, DRAINED, 0, (DISK, CORDON), before)
    assert (after.state, after.since, after.summary) == ("Drained", EARLIER, "check/disk, cordon")
    assert {cause.name: cause.since for cause in after.causes} == {"cordon": EARLIER, "check/disk": EARLIER}
    up = describe(SET, look(IDLE), 0, (), before)
    assert (up.state, up.since) == ("Up", NOW_TEXT)
    again = describe(SET, DRAINED, 0, (CORDON,), up)
    assert (again.since, again.causes[0].since) == (NOW_TEXT, NOW_TEXT)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("IDLE CLOUD", "Up"),
        ("MIXED CLOUD", "Up"),
        ("MIXED CLOUD DRAIN", "Draining"),
        ("IDLE CLOUD DRAIN", "Drained"),
        ("DOWN CLOUD NOT_RESPONDING", "Down"),
        ("MIXED CLOUD POWERING_UP", "PoweringUp"),
        ("IDLE CLOUD POWERING_DOWN", "PoweringDown"),
        ("IDLE CLOUD POWERED_DOWN", "PoweredDown"),
        ("IDLE ODD", "Unknown"),
    ],
)
def test_state_is_one_word_for_what_slurm_says(words: str, state: str) -> None:
    assert describe(SET, look((pod(), node(words))), 0, (), SlurmNodeStatus()).state == state


def test_node_that_slurm_does_not_list_is_unknown() -> None:
    assert describe(SET, look((pod(), None)), 0, (), SlurmNodeStatus()).state == "Unknown"


@pytest.mark.parametrize(
    ("observed", "deletion", "is_sweep", "delete"),
    [
        pytest.param(look((None, node())), None, True, (0,), id="neither-pod-nor-cause"),
        pytest.param(look((None, node())), None, False, (), id="only-at-a-sweep"),
        pytest.param(look((None, node())), "2026-01-01T00:00:00Z", True, (), id="goes-with-a-set-that-is-deleted"),
        pytest.param(look((None, node()), on_their_way=frozenset({0})), None, True, (), id="pod-is-on-its-way"),
        pytest.param(look(IDLE), None, True, (), id="pod-is-there"),
        pytest.param(look((None, node()), silent=True), None, True, (), id="slurm-is-silent"),
    ],
)
def test_object_is_deleted_when_nothing_is_left_to_say(
    observed: Observed, deletion: str | None, is_sweep: bool, delete: tuple[int]
) -> None:
    meta = ObjectMeta(name="gpu", namespace="slurm", uid="u", deletion_timestamp=deletion)
    of = type(SET)(meta, SET.spec)
    assert plan_slurm_nodes(of, observed, {}, {0: stored(look(IDLE))}, {}, is_sweep).delete == delete


@given(
    pods=st.sets(st.integers(0, 400)),
    troubled=st.sets(st.integers(0, 400)),
    there=st.sets(st.integers(0, 400)),
)
@example(pods=set(range(300)), troubled=set(range(250, 401)), there=set(range(100, 401)))
@example(pods=set(), troubled=set(), there=set(range(401)))
def test_sweep_writes_each_object_once_and_never_many_in_one_round(pods: set[int], troubled: set[int], there: set[int]) -> None:
    """However much is to be written: first the causes, and what was written is not written again before it is heard of."""
    nodes = {at: node() for at in range(401)}
    observed = Observed({at: pod() for at in pods}, nodes, NOW)
    causes = dict.fromkeys(troubled, (CORDON,))
    objects: Mapping[int, SlurmNode] = {at: stored(look(IDLE), (), "another set") for at in there}
    lately: dict[int, SlurmNodeStatus] = {}
    deleted: list[int] = []
    for _ in range(802 // MOST_AT_ONCE + 2):
        made = plan_slurm_nodes(SET, observed, causes, objects, lately, is_sweep=True)
        assert len(made.apply) + len(made.delete) <= MOST_AT_ONCE
        assert not made.apply.keys() & lately.keys()
        assert not (made.apply.keys() - troubled) or troubled <= made.apply.keys() | lately.keys(), "causes come first"
        lately |= made.apply
        deleted += made.delete
        objects = {at: each for at, each in objects.items() if at not in made.delete}
        if not made.is_cut:
            break
    assert lately.keys() == pods | troubled
    assert sorted(deleted) == sorted(there - pods - troubled)


@pytest.mark.parametrize("is_sweep", [True, False])
def test_what_was_written_a_moment_ago_is_not_written_again(is_sweep: bool) -> None:
    """The informer has the object as it was before."""
    lately = {0: describe(SET, look(IDLE, now=NOW - 1), 0, (CORDON,), SlurmNodeStatus())}
    assert plan_slurm_nodes(SET, look(IDLE), {0: (CORDON,)}, {0: stored(look(IDLE))}, lately, is_sweep).apply == {}
    assert plan_slurm_nodes(SET, look(IDLE), {0: (CORDON, DISK)}, {0: stored(look(IDLE))}, lately, is_sweep).apply.keys() == {0}


def test_while_slurm_is_silent_objects_stay_as_they_are() -> None:
    observed = look(IDLE, silent=True)
    assert plan_slurm_nodes(SET, observed, {0: (CORDON,)}, {}, {}, is_sweep=True).apply == {}


def test_object_is_the_sets_and_found_by_its_labels() -> None:
    made = build_slurm_node(SET, 3, SlurmNodeStatus("Up", NOW_TEXT))["metadata"]
    assert made["name"] == "gpu-3"
    assert made["labels"] == {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
    [owner] = made["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("NodeSet", "gpu", "u", True)


def told(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """State and summary by object."""
    found = {key[1]: cluster.server.get(SLURM_NODES, key)["status"] for key in cluster.server.keys(SLURM_NODES)}
    return {name: (status["state"], status["summary"]) for name, status in found.items()}


def writes(cluster: Cluster) -> int:
    return sum(request.plural == SLURM_NODES.plural for request in cluster.server.writes())


async def sweep(cluster: Cluster) -> None:
    cluster.process.later_s += SWEEP_S
    await cluster.rounds(2)


def fail_disk(cluster: Cluster, name: str, result: str = FAILED) -> None:
    failure = Failure("2026-02-03T04:05:06Z", "/scratch is full") if result == FAILED else None
    cluster.slurm.extras[name] = with_result("", "disk", CheckResult(result, "2026-02-03T04:05:06Z", failure)) or ""


@pytest.mark.anyio
async def test_each_worker_has_its_object_and_a_lifted_cause_leaves_the_other(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2, healthChecks=["disk"])
    await cluster.rounds(4)
    assert told(cluster) == {}, "a set that comes up is not held up by reports"
    await sweep(cluster)
    assert told(cluster) == {"gpu-0": ("Up", ""), "gpu-1": ("Up", "")}
    cluster.machine("machine", cordoned=True, words="new fans")
    fail_disk(cluster, "gpu-0")
    await cluster.rounds(1)
    assert {name: summary for name, (_, summary) in told(cluster).items()} == {"gpu-0": "check/disk, cordon", "gpu-1": "cordon"}
    await cluster.rounds(1)
    assert told(cluster)["gpu-1"] == ("Drained", "cordon")
    before = {cause["name"]: cause["since"] for cause in cluster.server.get(SLURM_NODES, ("slurm", "gpu-0"))["status"]["causes"]}
    cluster.machine("machine")
    await cluster.rounds(1)
    [left] = cluster.server.get(SLURM_NODES, ("slurm", "gpu-0"))["status"]["causes"]
    assert (left["name"], left["since"], left["evidence"]) == ("check/disk", before["check/disk"], "/scratch is full")
    fail_disk(cluster, "gpu-0", PASSED)
    await cluster.rounds(1)
    assert told(cluster)["gpu-0"] == ("Drained", ""), "the last cause is gone, and the drain is lifted in the same round"
    await cluster.rounds(1)
    assert told(cluster) == {"gpu-0": ("Up", ""), "gpu-1": ("Up", "")}


@pytest.mark.anyio
async def test_objects_of_a_set_at_rest_are_not_written(cluster: Cluster) -> None:
    cluster.declare(nodes=3, replicas=3)
    await cluster.rounds(4)
    await sweep(cluster)
    cluster.slurm.words["gpu-2"].add("DRAIN")
    cluster.slurm.reasons["gpu-2"] = "fan is loud"
    await sweep(cluster)
    before = writes(cluster)
    for _ in range(3):
        await sweep(cluster)
    assert writes(cluster) == before


@pytest.mark.anyio
async def test_annotation_that_somebody_gave_an_object_survives(cluster: Cluster) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    await sweep(cluster)
    cluster.server.patch(SLURM_NODES, ("slurm", "gpu-0"), {"metadata": {"annotations": {"ticket": "17"}}})
    cluster.machine("machine", cordoned=True)
    await cluster.rounds(1)
    assert told(cluster)["gpu-0"][1] == "cordon"
    assert cluster.server.get(SLURM_NODES, ("slurm", "gpu-0"))["metadata"]["annotations"] == {"ticket": "17"}


@pytest.mark.anyio
@pytest.mark.parametrize("change", ["deleted", "edited", "not-readable"])
async def test_object_that_somebody_changed_is_right_again_at_a_sweep(cluster: Cluster, change: str) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    await sweep(cluster)
    key = ("slurm", "gpu-0")
    if change == "deleted":
        cluster.server.remove(SLURM_NODES, key)
    else:
        cluster.server.patch(SLURM_NODES, key, {"status": {"state": "Down" if change == "edited" else "Tired"}})
    await eventually(lambda: change != "not-readable" or key in cluster.process.slurm_nodes.unread)
    cluster.process.later_s += SWEEP_S
    await cluster.process.poller.fresh()
    await eventually(lambda: change != "edited" or _state(cluster) == "Down")
    await cluster.process.reconciler.reconcile(KEY)
    assert told(cluster) == {"gpu-0": ("Up", "")}
    assert cluster.status()["phase"] == "Ready"
    await cluster.process.caught_up()


def _state(cluster: Cluster) -> str:
    known = cluster.process.slurm_nodes.get(("slurm", "gpu-0"))
    return known.status.state if known is not None else ""


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(4))
async def test_objects_are_right_one_round_after_a_kill_between_writes(cluster: Cluster, allowed: int) -> None:
    cluster.declare(nodes=3, replicas=3)
    await cluster.rounds(4)
    await sweep(cluster)
    cluster.machine("machine", cordoned=True)
    done = writes(cluster)
    cluster.server.on_request = lambda request: (
        Broken("cut") if request.is_write and request.plural == SLURM_NODES.plural and writes(cluster) > done + allowed else None
    )
    await cluster.rounds(1)
    cluster.server.on_request = None
    assert sum(summary == "cordon" for _, summary in told(cluster).values()) == min(allowed, 3)
    await cluster.replace_process()
    await cluster.rounds(1)
    assert {summary for _, summary in told(cluster).values()} == {"cordon"}


@pytest.mark.anyio
async def test_silent_slurm_leaves_objects_as_they_are(cluster: Cluster) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    await sweep(cluster)
    cluster.slurm.is_silent = True
    cluster.machine("machine", cordoned=True)
    before = writes(cluster)
    await sweep(cluster)
    assert (told(cluster), writes(cluster)) == ({"gpu-0": ("Up", "")}, before)


@pytest.mark.anyio
async def test_object_goes_when_the_node_has_neither_pod_nor_cause(cluster: Cluster) -> None:
    cluster.declare(nodes=2, min=0, max=2)
    cluster.slurm.wake("gpu-1", 7)
    await cluster.rounds(3)
    await sweep(cluster)
    assert told(cluster) == {"gpu-1": ("Up", "")}
    cluster.slurm.end_job("gpu-1")
    cluster.slurm.words["gpu-1"] = {"IDLE", "CLOUD", "POWERED_DOWN"}
    await cluster.rounds(3)
    await sweep(cluster)
    assert told(cluster) == {}


@pytest.mark.anyio
async def test_many_objects_take_several_rounds_that_follow_soon(cluster: Cluster) -> None:
    number = MOST_AT_ONCE + 5
    cluster.declare(nodes=number, replicas=number, maxPodsInFlight=number)
    await cluster.rounds(4)
    cluster.process.later_s += SWEEP_S
    following = await cluster.process.round()
    assert (len(told(cluster)), following.seconds) == (MOST_AT_ONCE, SOON_S)
    following = await cluster.process.round()
    assert (len(told(cluster)), following.seconds > SOON_S) == (number, True)
    assert writes(cluster) == number


@pytest.mark.anyio
async def test_refused_object_is_told_in_the_status_and_holds_up_nothing(cluster: Cluster) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.server.on_request = lambda request: (
        Broken("status", status=422, reason="Invalid", message="no") if request.is_write and request.plural == SLURM_NODES.plural else None
    )
    cluster.declare(nodes=2, replicas=2)
    await sweep(cluster)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1"}
    assert "object of a Slurm node: " in next(one for one in cluster.status()["conditions"] if one["type"] == "Reconciled")["message"]
    cluster.server.on_request = None
    await cluster.rounds(1)
    assert told(cluster).keys() == {"gpu-0", "gpu-1"}


@pytest.mark.anyio
async def test_deleted_set_leaves_its_objects_to_the_garbage_collector(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    await sweep(cluster)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.server.objects.delete(cluster.server.objects.kind(NODESETS.api_version, NODESETS.plural), KEY)
    await sweep(cluster)
    assert told(cluster)["gpu-1"] == ("Draining", "delete")
    cluster.slurm.end_job("gpu-1")
    await cluster.rounds(4)
    assert KEY not in cluster.server.keys(NODESETS)
    assert not [request for request in cluster.server.writes() if request.plural == SLURM_NODES.plural and request.verb == "delete"]


@pytest.mark.anyio
async def test_object_whose_news_is_late_is_not_written_again(cluster: Cluster) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.machine("machine", cordoned=True)
    await cluster.process.caught_up()
    cluster.server.freeze()
    for _ in range(4):
        await cluster.process.poller.fresh()
        await cluster.process.reconciler.reconcile(KEY)
    assert writes(cluster) == 2, "the cause, then the drain that follows it"
    cluster.server.freeze(False)


@pytest.mark.anyio
async def test_set_that_is_gone_leaves_no_new_object(cluster: Cluster) -> None:
    cluster.declare(nodes=2, min=0, max=2)
    await cluster.rounds(2)
    cluster.server.objects.delete(cluster.server.objects.kind(NODESETS.api_version, NODESETS.plural), KEY)
    await sweep(cluster)
    assert KEY not in cluster.server.keys(NODESETS)
    assert told(cluster) == {}


@pytest.mark.anyio
async def test_metrics_count_nodes_by_state_and_by_cause_and_fall_back_to_zero(cluster: Cluster) -> None:
    def counted(name: str, **labels: str) -> float | None:
        return REGISTRY.get_sample_value(name, {"nodeset": "gpu", **labels})

    cluster.declare(nodes=2, replicas=2, healthChecks=["disk"])
    await cluster.rounds(4)
    assert counted("slipway_nodeset_nodes", state="idle") == 2
    fail_disk(cluster, "gpu-0")
    await cluster.rounds(2)
    assert (counted("slipway_nodeset_nodes", state="idle"), counted("slipway_nodeset_nodes", state="drained")) == (1, 1)
    assert counted("slipway_nodeset_causes", cause="check/disk", wish="drain") == 1
    fail_disk(cluster, "gpu-0", PASSED)
    await cluster.rounds(2)
    assert counted("slipway_nodeset_nodes", state="drained") == 0
    assert counted("slipway_nodeset_causes", cause="check/disk", wish="drain") == 0
