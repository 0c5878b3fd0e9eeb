"""Order of a deployment: an engine that makes one object at a time, and waits for each, must come to the end (`pulumi up --parallel 1`)."""

import pytest

from engine.plan import Plan, Resource
from tests.plan.engine import needs
from tests.plan.examples import objects, pod_specs

STARTED_BEFORE = {
    "slurmdbd": ("mariadb",),
    # At its first start with accounting slurmctld waits for slurmdbd. Source: docs/explain/slurm-facts.md.
    "slurmctld": ("slurmdbd", "mariadb"),
    "nodeset-controller": ("slurmctld", "slurmrestd"),
}
"""Workloads, by the end of their names, that become ready only after others."""


def workload(plan: Plan, end: str) -> Resource | None:
    """The StatefulSet or Deployment `<cluster>-<end>`."""
    kinds = ("StatefulSet", "Deployment")
    return next((one for one in objects(plan) if one.inputs["kind"] in kinds and one.name == f"{plan.stack}-{end}"), None)


@pytest.mark.parametrize("end", [*STARTED_BEFORE])
def test_what_a_workload_waits_for_is_made_before_it(plan: Plan, end: str) -> None:
    one, before = workload(plan, end), [workload(plan, other) for other in STARTED_BEFORE[end]]
    assert one is not None
    made = needs(plan)[one.urn]
    assert [other.name for other in before if other is not None and other.urn not in made] == []
    assert any(before)


def test_node_sets_come_after_slurm_and_the_nodeset_controller(plan: Plan) -> None:
    first = {one.urn for end in ("slurmctld", "slurmrestd", "nodeset-controller") if (one := workload(plan, end))}
    assert len(first) == 3
    for one in objects(plan):
        if one.inputs["kind"] == "NodeSet":
            assert first <= needs(plan)[one.urn], one.name


def test_pods_that_are_waited_for_come_after_all_that_they_mount(plan: Plan) -> None:
    made = needs(plan)
    names = {(one.inputs["kind"], one.inputs["metadata"]["name"]): one.urn for one in objects(plan)}
    late: list[str] = []
    for one, _, spec in pod_specs(plan):
        wanted = [("ServiceAccount", spec.get("serviceAccountName")), ("PriorityClass", spec.get("priorityClassName"))]
        wanted += [("RuntimeClass", spec.get("runtimeClassName"))]
        for volume in spec.get("volumes", []):
            if volume.get("secret", {}).get("optional"):
                continue  # the pod starts without it
            wanted += [("ConfigMap", volume.get("configMap", {}).get("name")), ("Secret", volume.get("secret", {}).get("secretName"))]
            wanted += [("PersistentVolumeClaim", volume.get("persistentVolumeClaim", {}).get("claimName"))]
        missing = [(kind, name) for kind, name in wanted if (kind, name) in names and names[kind, name] not in made[one.urn]]
        late += [f"{one.name} needs {kind} {name}" for kind, name in missing if one.inputs["kind"] != "CronJob"]
    assert late == []


def test_no_service_is_waited_for(plan: Plan) -> None:
    """The provider counts a Service as ready when it has pods behind it, and these are made after it."""
    services = [one for one in objects(plan) if one.inputs["kind"] == "Service"]
    assert services
    assert [one.name for one in services if one.inputs["metadata"]["annotations"].get("pulumi.com/skipAwait") != "true"] == []


def test_nothing_comes_before_itself(plan: Plan) -> None:
    assert [urn for urn, before in needs(plan).items() if urn in before] == []


def test_only_the_record_of_what_is_deployed_comes_after_the_node_sets(plan: Plan) -> None:
    sets = {one.urn for one in objects(plan) if one.inputs["kind"] == "NodeSet"}
    assert sets
    records = {urn for urn, before in needs(plan).items() if sets & before}
    assert records
    assert all(urn.removesuffix("-2").endswith("-deployed") for urn in records)
    jobs = {one.urn for one in objects(plan) if one.inputs["kind"] == "Job"}
    assert all(needs(plan)[record] >= {one.urn for one in objects(plan)} - records - jobs for record in records)
