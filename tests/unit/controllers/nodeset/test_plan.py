"""One look, one plan: tables for what people read in docs/operate/node-sets.md."""

from math import inf
from typing import Any, Literal

import msgspec
import pytest

from controllers.nodeset.observed import GhostPace, Observed, Pauses
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.rolls import budget_of
from controllers.nodeset.plans.wanted import scale_in_order
from controllers.nodeset.pods import build_pod, node_name, ordinal_of, revision
from controllers.nodeset.structs import Drain, NodeSetObject, PodTemplate, UpdateStrategy
from controllers.nodeset.workers import NodeJob, Worker
from slurm.reasons import SCALE_IN, UPDATE
from tests.support.controllers.nodeset.examples import (
    BUSY,
    CURRENT,
    ENDING,
    GHOST,
    IDLE,
    NO_REQUEUE,
    NOW,
    OLD,
    SALLOC,
    TEMPLATE,
    acts_of,
    look,
    node,
    nodeset,
    pod,
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(Worker(0, pod(), node("IDLE DRAIN", SCALE_IN)), Worker(1, pod(ready=False), node()), id="on-its-way-out"),
        pytest.param(Worker(0, pod(ready=False), node("ALLOCATED")), Worker(1, pod(), node()), id="not-ready"),
        pytest.param(Worker(0, pod(ready=False), node()), Worker(1, pod(ready=False, machine="m"), node()), id="unscheduled-then-starting"),
        pytest.param(Worker(0, pod(), node("IDLE DRAIN", "fan is loud")), Worker(1, pod(), node()), id="drained-by-others-then-idle"),
        pytest.param(Worker(0, pod(), node("DOWN", "Not responding")), Worker(1, pod(), node()), id="down-then-idle"),
        pytest.param(Worker(0, pod(), node()), Worker(1, pod(), node("MIXED CLOUD POWERING_UP")), id="idle-then-waking"),
        pytest.param(Worker(0, pod(), node()), Worker(1, pod(), node("ALLOCATED", last_job_end=1.0)), id="idle"),
        pytest.param(
            Worker(0, pod(), node("ALLOCATED", last_job_end=5.0)), Worker(1, pod(), node("ALLOCATED", last_job_end=9.0)), id="earlier-end"
        ),
        pytest.param(Worker(0, pod(), node("ALLOCATED", last_job_end=5.0)), Worker(1, pod(), node("ALLOCATED")), id="end-unknown-is-last"),
        pytest.param(Worker(0, pod(cost=1), node()), Worker(1, pod(cost=2), node()), id="cheaper"),
        pytest.param(Worker(0, pod(created_at=9.0), node()), Worker(1, pod(created_at=1.0), node()), id="newer"),
    ],
)
def test_scale_in_takes_first(first: Worker, second: Worker) -> None:
    assert scale_in_order([second, first]) == [first, second]


@pytest.mark.parametrize(
    ("spec", "seen", "expected"),
    [
        pytest.param({"replicas": 3}, look((None, None), IDLE), {"create": (0, 2)}, id="missing-is-made"),
        pytest.param({"replicas": 2}, look(on_their_way=frozenset({0})), {"create": (1,)}, id="made-once"),
        pytest.param(
            {"replicas": 9, "max_pods_in_flight": 2},
            look((pod(ready=False, created_at=NOW - 10), node())),
            {"create": (1,)},
            id="in-flight",
        ),
        pytest.param({"replicas": 1}, look(IDLE, BUSY), {"drain": {SCALE_IN: (0,)}}, id="shrink-drains-the-idle-one"),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE DRAIN", SCALE_IN)), BUSY), {"delete": (0,)}, id="drained-goes"),
        pytest.param({"replicas": 1}, look((pod(), node("MIXED DRAIN", SCALE_IN)), BUSY), {}, id="draining-stays"),
        pytest.param({"replicas": 2}, look((pod(), node("MIXED DRAIN", SCALE_IN)), BUSY), {"undrain": (0,)}, id="grow-again-lifts"),
        pytest.param({"replicas": 0}, look(IDLE, silent=True), {}, id="silence-keeps-all"),
        pytest.param({"replicas": 0}, look((pod(), None)), {}, id="node-that-slurm-does-not-know-is-kept"),
        pytest.param({"replicas": 1}, look((OLD, node())), {"drain": {UPDATE: (0,)}}, id="roll-drains"),
        pytest.param({"replicas": 1}, look((OLD, node("IDLE DRAIN", "fan is loud"))), {}, id="roll-leaves-an-administrators-drain"),
        pytest.param({"replicas": 2}, look((OLD, node()), (OLD, node("IDLE DRAIN", UPDATE))), {"delete": (1,)}, id="roll-one-at-a-time"),
        pytest.param({"replicas": 1}, look((OLD, node("IDLE CLOUD POWERED_DOWN"))), {"delete": (0,)}, id="roll-of-what-never-registered"),
        pytest.param({"replicas": 1, "update_strategy": UpdateStrategy("OnDelete")}, look((OLD, node())), {}, id="on-delete"),
        pytest.param(
            {"replicas": 1, "update_strategy": UpdateStrategy("Maintenance", 1, "window")}, look((OLD, node())), {}, id="outside-the-window"
        ),
        pytest.param(
            {"replicas": 1, "update_strategy": UpdateStrategy("Maintenance", 1, "window")},
            look((OLD, node()), window=frozenset({0})),
            {"drain": {UPDATE: (0,)}},
            id="inside-the-window",
        ),
        pytest.param(
            {"replicas": 2}, look(BUSY, BUSY, held=frozenset({0, 1})), {"drain": {UPDATE: (1,)}}, id="other-size-drains-as-a-roll"
        ),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE DRAIN", UPDATE)), held=frozenset({0})), {}, id="other-size-keeps-the-pod"),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE DRAIN", UPDATE))), {"undrain": (0,)}, id="other-size-taken-lifts"),
        pytest.param(
            {"replicas": 1}, look((OLD, node("IDLE DRAIN", UPDATE)), held=frozenset({0})), {"delete": (0,)}, id="roll-with-a-size"
        ),
        pytest.param(
            {"replicas": 1, "update_strategy": UpdateStrategy("OnDelete")}, look(BUSY, held=frozenset({0})), {}, id="other-size-on-delete"
        ),
        pytest.param(
            {"replicas": 1, "update_strategy": UpdateStrategy("Maintenance", 1, "window")},
            look(BUSY, held=frozenset({0})),
            {},
            id="other-size-outside-the-window",
        ),
        pytest.param({"min": 0, "max": 2}, look((None, node("MIXED CLOUD NOT_RESPONDING POWERING_UP"))), {"create": (0,)}, id="waking"),
        pytest.param({"min": 0, "max": 2}, look((None, node("IDLE CLOUD POWERED_DOWN"))), {}, id="asleep"),
        pytest.param({"min": 1, "max": 2}, look((None, node("IDLE CLOUD POWERED_DOWN"))), {"create": (0,)}, id="the-least-are-there"),
        pytest.param({"min": 0, "max": 2}, look((pod(), node("IDLE CLOUD POWERING_DOWN"))), {"delete": (0,)}, id="goes-to-sleep"),
        pytest.param(
            {"min": 0, "max": 2}, look((None, node("IDLE CLOUD POWERING_DOWN"))), {"release": (0,)}, id="asleep-once-its-pod-is-gone"
        ),
        pytest.param(
            {"min": 0, "max": 2},
            look((pod(terminating=True), node("IDLE CLOUD POWERING_DOWN"))),
            {},
            id="not-asleep-while-its-pod-is-there",
        ),
        pytest.param(
            {"min": 0, "max": 2},
            look((None, node("IDLE CLOUD POWERING_DOWN")), on_their_way=frozenset({0})),
            {},
            id="not-asleep-while-a-pod-is-on-its-way",
        ),
        pytest.param({"min": 0, "max": 2}, look((None, node("IDLE CLOUD POWERING_DOWN")), silent=True), {}, id="not-asleep-in-silence"),
        *(
            pytest.param({"min": 0, "max": 2}, look((None, node(f"{words} CLOUD POWERING_DOWN", "fan"))), {}, id=f"not-lifted-{words}")
            for words in ("IDLE DRAIN", "DOWN", "IDLE FAIL")
        ),
        pytest.param({"replicas": 1}, look((None, node("IDLE CLOUD POWERING_DOWN"))), {"create": (0,)}, id="fixed-set-sleeps-by-itself"),
        pytest.param({"min": 0, "max": 2}, look((None, node("IDLE CLOUD"))), {"create": (0,)}, id="ghost-gets-its-pod-back"),
        pytest.param(
            {"min": 0, "max": 2}, look((None, node("DOWN CLOUD POWERED_DOWN", "ResumeTimeout reached"))), {"resume": (0,)}, id="tried-again"
        ),
        pytest.param(
            {"min": 0, "max": 2},
            look((None, node("DOWN CLOUD POWERED_DOWN", "ResumeTimeout reached")), pauses=Pauses(frozenset({0}), resumed_at={0: NOW + 30})),
            {},
            id="not-yet-tried-again",
        ),
        pytest.param({"replicas": 1}, look((pod(finished=True, ready=False), node("DOWN"))), {"delete": (0,)}, id="failed-pod"),
        pytest.param({"replicas": 1}, look((pod(), node("ALLOCATED CLOUD"))), {"mark_busy": (0,)}, id="busy-is-marked"),
        pytest.param({"replicas": 1}, look((pod(marked_busy=True), node())), {"mark_free": (0,)}, id="idle-is-marked"),
    ],
)
def test_plan(spec: dict[str, Any], seen: Observed, expected: dict[str, Any]) -> None:
    assert acts_of(plan_nodeset(nodeset(**spec), seen), expected) == expected


@pytest.mark.parametrize(
    ("drain", "since", "requeue", "cancel", "late_in_s"),
    [
        pytest.param(Drain("Wait"), 0.0, (), (), inf, id="wait"),
        pytest.param(Drain("Requeue", 60), NOW - 59, (), (), 1, id="before-the-deadline"),
        pytest.param(Drain("Requeue", 60), NOW - 60, ("7",), (), inf, id="requeue"),
        pytest.param(Drain("Cancel", 60), NOW - 61, (), (0,), inf, id="cancel"),
    ],
)
def test_jobs_past_the_deadline(drain: Drain, since: float, requeue: tuple[str, ...], cancel: tuple[int, ...], late_in_s: float) -> None:
    seen = look((pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=(NodeJob("7"),))), drained_at={0: since})
    made = plan_nodeset(nodeset(replicas=0, drain=drain), seen)
    assert (made.deadlines.requeue, made.deadlines.cancel, made.deadlines.next_s) == (requeue, cancel, late_in_s)


@pytest.mark.parametrize(
    ("action", "jobs", "requeue", "cancel", "unmovable"),
    [
        pytest.param("Requeue", (NodeJob("7"), NodeJob("6"), NodeJob("10_2")), ("6", "7", "10_2"), (), {}, id="requeue-all"),
        pytest.param("Requeue", (NodeJob("7"), SALLOC, NO_REQUEUE), ("7",), (), {0: (SALLOC, NO_REQUEUE)}, id="what-slurm-requeues"),
        pytest.param("Requeue", (SALLOC,), (), (), {0: (SALLOC,)}, id="leave-the-rest-to-run"),
        pytest.param("Requeue", (ENDING,), (), (), {}, id="requeue-asked-once"),
        pytest.param("Cancel", (SALLOC, NO_REQUEUE), (), (0,), {}, id="cancel-any"),
        pytest.param("Cancel", (ENDING,), (), (), {}, id="cancel-asked-once"),
        pytest.param("Wait", (SALLOC,), (), (), {}, id="wait"),
    ],
)
def test_what_is_asked_of_jobs_past_the_deadline(
    action: Literal["Wait", "Requeue", "Cancel"],
    jobs: tuple[NodeJob, ...],
    requeue: tuple[str, ...],
    cancel: tuple[int, ...],
    unmovable: dict[int, tuple[NodeJob, ...]],
) -> None:
    seen = look((pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=jobs)), drained_at={0: 0.0})
    made = plan_nodeset(nodeset(replicas=0, drain=Drain(action, None if action == "Wait" else 60)), seen)
    assert (made.deadlines.requeue, made.deadlines.cancel, made.deadlines.unmovable) == (requeue, cancel, unmovable)
    assert made.needs_fresh_reading == bool(requeue or cancel), "a job that nothing is asked of is no reason to look again at once"


@pytest.mark.parametrize(
    ("ordinals", "is_deleted", "silent", "deleted"),
    [
        pytest.param(9, True, False, (0, 1), id="the-set-goes"),
        pytest.param(1, False, False, (1,), id="beyond-what-slurm-conf-has"),
        pytest.param(9, False, False, (), id="slurm-should-know-it"),
        pytest.param(9, True, True, (), id="slurm-is-silent"),
    ],
)
def test_pod_whose_node_was_struck_off_slurms_files(ordinals: int, is_deleted: bool, silent: bool, deleted: tuple[int, ...]) -> None:
    """slurmctld may read the files without it at the moment at which its last job has ended."""
    one = nodeset(replicas=0, ordinals=ordinals)
    meta = msgspec.structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z" if is_deleted else None)
    made = plan_nodeset(NodeSetObject(meta, one.spec), look((pod(), None), (pod(), None), silent=silent))
    assert made.deletions.free == deleted
    assert made.needs_fresh_reading == bool(deleted)


LATER, THREE = GhostPace(is_due=False), GhostPace(batch_size=3)


@pytest.mark.parametrize(
    ("spec", "seen", "gone", "left"),
    [
        pytest.param({"min": 0, "max": 9}, look(GHOST, IDLE), (0,), (), id="one"),
        pytest.param({"min": 1, "max": 9}, look(GHOST, IDLE), (0,), (), id="one-below-min"),
        pytest.param({"min": 1, "max": 9}, look(*[GHOST] * 9), (0,), tuple(range(1, 9)), id="all-of-nine"),
        pytest.param({"min": 0, "max": 60}, look(*[GHOST] * 60), (0, 1, 2), tuple(range(3, 60)), id="one-in-twenty"),
        pytest.param(
            {"min": 0, "max": 60},
            look(*[GHOST] * 9, ghosts=GhostPace(batch_size=3)),
            (0, 1, 2),
            tuple(range(3, 9)),
            id="as-many-as-at-first",
        ),
        pytest.param(
            {"min": 0, "max": 60, "max_pods_in_flight": 2}, look(*[GHOST] * 60), (0, 1), tuple(range(2, 60)), id="no-more-than-in-flight"
        ),
        pytest.param({"min": 1, "max": 9}, look(*[GHOST] * 9, ghosts=LATER), (), tuple(range(9)), id="not-yet-more"),
        pytest.param({"min": 0, "max": 9}, look(*[(pod(), GHOST[1])] * 3, GHOST, ghosts=LATER), (0, 1, 2), (3,), id="idle-before"),
        pytest.param({"min": 2, "max": 9}, look(*[(pod(), GHOST[1])] * 3), (0, 1, 2), (), id="idle-before-below-min"),
        pytest.param(
            {"min": 0, "max": 9},
            look(*[(pod(marked_busy=True, ready=False, machine="lost", has_run=True), GHOST[1])] * 2),
            (0,),
            (1,),
            id="not-ready-now-may-have-jobs",
        ),
        pytest.param(
            {"min": 0, "max": 9},
            look(*[(pod(), node("IDLE CLOUD POWERING_DOWN"))] * 9, ghosts=LATER),
            tuple(range(9)),
            (),
            id="asleep-is-none",
        ),
        pytest.param(
            {"min": 0, "max": 9},
            look(*[(pod(), node("DOWN CLOUD POWERED_DOWN", "ResumeTimeout reached"))] * 9, ghosts=LATER),
            tuple(range(9)),
            (),
            id="too-late-is-none",
        ),
        pytest.param(
            {"min": 0, "max": 9},
            look(*[(pod(ready=False, machine="m"), GHOST[1])] * 2, ghosts=LATER),
            (0, 1),
            (),
            id="never-ready-is-none",
        ),
        pytest.param(
            {"min": 0, "max": 9},
            look(*[(pod(created_at=NOW - 30), GHOST[1])] * 2, ghosts=LATER),
            (0, 1),
            (),
            id="just-made-is-none",
        ),
        pytest.param(
            {"min": 2, "max": 9, "update_strategy": UpdateStrategy(max_unavailable="100%")},
            look(*[(pod(revision="old", marked_busy=True), GHOST[1])] * 9),
            (0,),
            tuple(range(1, 9)),
            id="roll-takes-no-more",
        ),
    ],
)
def test_pods_that_run_although_slurm_has_them_off_go_a_few_at_a_time(
    spec: dict[str, Any], seen: Observed, gone: tuple[int, ...], left: tuple[int, ...]
) -> None:
    made = plan_nodeset(nodeset(**spec), seen)
    assert (made.deletions.free, made.ghosts.evict_later) == (gone, left)
    assert made.labels.free == (), "one that may have lost its job to a lost state may not be evicted"


def test_deleted_set_does_not_wait_for_its_ghosts() -> None:
    one = nodeset(min=0, max=9)
    going = NodeSetObject(msgspec.structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"), one.spec)
    assert plan_nodeset(going, look(*[GHOST] * 9)).deletions.free == tuple(range(9))


@pytest.mark.parametrize(
    ("said", "size", "budget"),
    [(1, 100, 1), (7, 3, 7), ("10%", 100, 10), ("10%", 5, 1), ("100%", 4, 4), ("33%", 10, 3)],
)
def test_budget(said: int | str, size: int, budget: int) -> None:
    assert budget_of(UpdateStrategy(max_unavailable=said), size) == budget


@pytest.mark.parametrize(
    ("name", "ordinal"), [("gpu-0", 0), ("gpu-12", 12), ("gpu-01", None), ("gpu-x", None), ("cpu-1", None), ("gpu", None), ("gpu-", None)]
)
def test_only_names_of_the_set_have_an_ordinal(name: str, ordinal: int | None) -> None:
    assert ordinal_of("gpu", name) == ordinal
    assert ordinal is None or node_name("gpu", ordinal) == name


def test_pod_is_named_labelled_owned_and_pinned() -> None:
    made = build_pod(nodeset(replicas=4), 3, "machine-7")
    assert (made["metadata"]["name"], made["spec"]["hostname"]) == ("gpu-3", "gpu-3")
    assert made["metadata"]["labels"] == {
        "slipway.dev/cluster": "dev",
        "slipway.dev/nodeset": "gpu",
        "slipway.dev/revision": CURRENT,
        "slipway.dev/busy": "true",
    }
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    [term] = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["machine-7"]}]}


def test_revision_follows_the_template_and_nothing_else() -> None:
    other = PodTemplate({**TEMPLATE.spec, "containers": [{"name": "slurmd", "image": "b"}]})
    assert revision(nodeset(replicas=4).spec) == revision(nodeset(replicas=9, max_pods_in_flight=1).spec)
    assert revision(nodeset(template=other).spec) != CURRENT


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param("IDLE CLOUD POWERED_DOWN WARPED", set[int](), id="off-with-a-word-of-a-later-release"),
        pytest.param("DOWN CLOUD POWERED_DOWN WARPED", set[int](), id="down-and-off"),
        pytest.param("MIXED CLOUD POWERED_DOWN WARPED", {0, 1}, id="a-job-has-it"),
        pytest.param("IDLE CLOUD POWERED_DOWN POWERING_UP WARPED", {0, 1}, id="it-wakes"),
        pytest.param("IDLE CLOUD WARPED", {0, 1}, id="nothing-says-that-it-is-off"),
    ],
)
def test_sleeping_elastic_node_gets_no_pod_for_a_word_that_is_not_known(words: str, wanted: set[int]) -> None:
    """With a pod it keeps it: the word may mean a job."""
    asleep = look((None, node(words)), (None, node(words)))
    assert plan_nodeset(nodeset(min=0, max=2), asleep).wanted == wanted
    assert plan_nodeset(nodeset(min=0, max=2), look((pod(), node(words)))).wanted == {0}
