"""Drivers that differ within a set: who differs, what is told of it, and that only those are drained that may be."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.nodeset.drivers import OTHER_DRIVER, find_other_drivers
from controllers.nodeset.observe import Surroundings, observe
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of
from controllers.runtime.structs import Condition, ObjectMeta, Pod, PodStatus
from controllers.slurm.snapshot import Snapshot
from controllers.slurm.structs import Node
from names import labels
from slurm.check_results import CheckResult, Driver, with_result
from tests.support.controllers.nodeset.examples import CURRENT, NOW, acts_of, nodeset

AT, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
OLD, NEW = "535.183.01", "550.90.07"
FOUND = f"{OLD}, where 2 of 3 nodes of the set have {NEW}"


@pytest.mark.parametrize(
    ("versions", "others"),
    [
        pytest.param([], [], id="none"),
        pytest.param([NEW], [], id="one-node"),
        pytest.param([NEW, NEW, NEW], [], id="all-the-same"),
        pytest.param([NEW, OLD], [], id="two-nodes-cannot-tell"),
        pytest.param([NEW, NEW, OLD, OLD], [], id="tie"),
        pytest.param([NEW, NEW, OLD, "560.1"], [], id="no-driver-on-more-than-half"),
        pytest.param([NEW, OLD, NEW], [1], id="one-differs"),
        pytest.param([OLD, NEW, NEW, "560.1", NEW], [0, 3], id="two-differ-from-most"),
    ],
)
def test_nodes_that_differ_from_most(versions: list[str], others: list[int]) -> None:
    found = find_other_drivers({at: Driver(version) for at, version in enumerate(versions)})
    assert list(found) == others
    assert not any(failure.drains for failure in found.values())


@given(st.dictionaries(st.integers(0, 20), st.builds(Driver, st.sampled_from([OLD, NEW, "560.1"]), st.just(2))))
def test_fewer_than_half_differ_and_no_more_are_drained_than_may_be(drivers: dict[int, Driver]) -> None:
    found = find_other_drivers(drivers)
    counts = Counter(driver.version for driver in drivers.values())
    assert 2 * len(found) < max(1, len(drivers))
    assert sum(failure.drains for failure in found.values()) == min(2, len(found))
    assert all(2 * counts[drivers[ordinal].version] < len(drivers) for ordinal in found)


def observed_of(extras: list[str], checks: tuple[str, ...] | None = ("gpu",), pods: int | None = None) -> Observed:
    ready = PodStatus(phase="Running", conditions=(Condition("Ready", "True"),))
    made = [
        Pod(ObjectMeta(f"gpu-{at}", "slurm", uid=f"p{at}", labels={labels.REVISION: CURRENT}), status=ready)
        for at in range(len(extras) if pods is None else pods)
    ]
    nodes = {f"gpu-{at}": Node(f"gpu-{at}", ("IDLE", "CLOUD"), extra=extra) for at, extra in enumerate(extras)}
    return observe(nodeset(replicas=len(extras), health_checks=checks), made, Snapshot(nodes, (), (), NOW), NOW, Surroundings())


def noted(version: str, drains: int = 0, at: str = AT, name: str = "gpu", extra: str = "") -> str:
    return with_result(extra, name, CheckResult("passed", at, None, Driver(version, drains))) or ""


def test_cause_names_both_versions_and_drains_nothing() -> None:
    observed = observed_of([noted(NEW), noted(OLD), noted(NEW)])
    found = find_causes_of(nodeset(replicas=3), observed, {})
    assert [*found] == [1]
    [cause] = found[1]
    assert (cause.name, cause.kind, cause.wish, cause.evidence) == ("driver", "node", "none", f"driver {FOUND}")
    assert "drain" not in acts_of(plan_nodeset(nodeset(replicas=3), observed))


def test_driver_that_is_to_drain_does_and_the_next_look_lifts_it() -> None:
    extras = [noted(NEW, 1), noted(OLD, 1), noted(NEW, 1)]
    observed = observed_of(extras)
    reason = f"slipway: check {OTHER_DRIVER}: {FOUND}"
    assert acts_of(plan_nodeset(nodeset(replicas=3), observed))["drain"] == {reason: (1,)}
    assert find_causes_of(nodeset(replicas=3), observed, {})[1][0].wish == "drain"


@pytest.mark.parametrize(
    ("extras", "checks", "pods"),
    [
        pytest.param([noted(NEW), noted(OLD), noted(NEW)], ("disk",), 3, id="check-is-no-longer-declared"),
        pytest.param([noted(NEW), noted(OLD), noted(NEW)], None, 3, id="deployer-does-not-say"),
        pytest.param([noted(NEW), noted(NEW), noted(OLD)], ("gpu",), 2, id="node-without-a-pod"),
        pytest.param([noted(NEW), "rack 7", noted(NEW)], ("gpu",), 3, id="field-of-somebody-else"),
        pytest.param(
            [noted(NEW), noted(NEW, at=LATER, name="gpu-state", extra=noted(OLD)), noted(NEW)],
            ("gpu", "gpu-state"),
            3,
            id="last-look-counts",
        ),
    ],
)
def test_driver_that_tells_nothing_of_now(extras: list[str], checks: tuple[str, ...] | None, pods: int) -> None:
    nodes = observed_of(extras, checks, pods).nodes or {}
    assert not any(OTHER_DRIVER in (node.failures or {}) for node in nodes.values())
