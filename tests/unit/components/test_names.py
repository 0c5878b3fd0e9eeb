"""No two objects, volumes or places of one stack meet, whatever users call their parts.

configs/rules/claims.py and names.py list what the components make.
"""

import re
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.labels import outside_name
from components.node_set import build_node_set
from components.pods import pod_defaults
from configs.faults import ConfigFaults
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.rules.claims import DISKS, POD_VOLUMES, own_claims
from configs.rules.names import PROGRAMS
from tests.support.components import program
from tests.support.components.program import Registered
from tests.support.configs.stacks import KEY, ROOT, edited, example

PROGRAM_MAPS = {name: f"dev-{name}" for name in ("names", "slurm", "config_sync", "munged", "node_checks", "worker")}
NFS = {"server": "10.0.0.5", "path": "/export"}
EVERYTHING: dict[str, Any] = {
    "storage.sharedRoot": {"nfs": NFS},
    "storage.home": {"nfsServer": True},
    "storage.mounts": [{"name": "x-1", "mountPath": "/x", "nfs": {**NFS, "path": "/x"}}],
    "storage.nfsServer": {"size": "1Ti", "clusterIP": "10.96.20.49"},
    "backup": {"volume": {"storageClass": "efs", "size": "1Gi"}},
    "accounting.purge": {"steps": "12months"},
    "accounting.archive": {"records": ["steps"], "volume": {"storageClass": "efs", "size": "1Gi"}},
    "accounting.defaultAccount": "all",
    "ec2": {"region": "eu-west-1"},
    "nodeSets[0].volumeClaims": [{"name": "local", "mountPath": "/local", "size": "1Gi"}],
}
LDAP = {"uris": ["ldaps://ldap.example"], "baseDn": "dc=x"}


def set_pod(cluster: Cluster, at: int = 0) -> dict[str, Any]:
    """The pod of a node set with the volumes that its claims become."""
    spec = cast(
        dict[str, Any],
        build_node_set(cluster, pod_defaults(cluster, "i:1", "s", PROGRAM_MAPS), cluster.node_sets[at])["spec"],
    )
    pod = spec["template"]["spec"]
    pod["volumes"] += [{"name": claim["metadata"]["name"]} for claim in spec.get("volumeClaimTemplates", [])]
    return pod


@pytest.mark.parametrize("edits", [{}, {"login.ldap": LDAP, "storage.home": {"nfs": {**NFS, "path": "/home"}}, "storage.nfsServer": None}])
def test_volumes_of_a_workers_pod_are_those_that_users_may_not_claim(edits: dict[str, Any]) -> None:
    said = {key: value for key, value in {**EVERYTHING, **edits, "nodeSets[1].simulatedGpus": False}.items() if value is not None}
    cluster = load_cluster(edited("dev", said), ROOT, "x")
    pods = [set_pod(cluster, at) for at in range(len(cluster.node_sets))]
    names = {volume["name"] for pod in pods for volume in pod["volumes"]} - {"local"}
    assert {name for name in names if not name.startswith("mount-")} <= POD_VOLUMES
    if not edits:
        assert names >= POD_VOLUMES


@pytest.fixture(scope="module")
def registered() -> list[Registered]:
    """A stack with every part, as the program registers it."""
    stack = edited("dev", EVERYTHING)
    stack["login"]["users"] = [{"name": "alice", "uid": 10001, "sshKeys": [KEY], "admin": True}]
    return program.run("dev", stack)


def objects(registered: list[Registered]) -> list[tuple[str, str, str]]:
    """Kind, namespace and name of all objects with a fixed name."""
    found: list[tuple[str, str, str]] = []
    for one in registered:
        about: dict[str, Any] = one.inputs.get("metadata", {})
        if one.type.startswith("kubernetes:") and "name" in about:
            found.append((str(one.inputs.get("kind", "")), str(about.get("namespace", "")), str(about["name"])))
    return found


def test_no_two_objects_of_a_stack_have_one_name(registered: list[Registered]) -> None:
    found = objects(registered)
    assert len(found) == len(set(found))
    assert len(found) > 50


def test_programs_that_a_node_set_may_not_be_called_after_are_all(registered: list[Registered]) -> None:
    """Pods, Services and budgets: what a node set has, too, under its own name or that of its nodes."""
    kinds = ("StatefulSet", "Deployment", "Service", "PodDisruptionBudget", "NodeSet")
    names = {name.removeprefix("dev-") for kind, _, name in objects(registered) if kind in kinds and name.startswith("dev-")}
    assert names <= PROGRAMS
    assert names >= PROGRAMS - {"identity"}


def test_claims_of_the_stack_are_those_that_node_sets_may_not_have(registered: list[Registered]) -> None:
    made = {name for kind, _, name in objects(registered) if kind == "PersistentVolumeClaim"}
    for one in registered:
        if one.inputs.get("kind") == "StatefulSet":
            templates: list[dict[str, Any]] = one.inputs["spec"].get("volumeClaimTemplates", [])
            made |= {f"{template['metadata']['name']}-{one.inputs['metadata']['name']}-0" for template in templates}
    cluster = load_cluster(edited("dev", EVERYTHING), ROOT, "x")
    assert made <= own_claims(cluster).keys()
    assert {f"{disk}-dev-{name}-0" for name, disk in DISKS.items()} <= made


NAMES = st.sampled_from(
    ["a", "b", "a-b", "b-c", "c", "dev", "dev-mount", "mariadb", "nfs", "dev-nfs", "state-dev", "slurmctld", "data-dev", "home"]
)
VOLUMES = st.sampled_from(["a", "a-b", "root", "tmp", "user-keys", "mount-a", "data-dev", "state-dev", "dev-mount", "local", "data", "dev"])


@given(
    st.lists(st.tuples(NAMES, st.lists(VOLUMES, max_size=2, unique=True)), min_size=1, max_size=3, unique_by=lambda each: each[0]),
    st.sampled_from(["x", "x-0", "a-1"]),
    st.sampled_from(["dev", "a", "a-b", "mount"]),
)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_accepted_has_no_two_of_one_name(sets: list[tuple[str, list[str]]], mount: str, name: str) -> None:
    stack = example("dev")
    stack["name"] = name
    claims = [[{"name": each, "mountPath": f"/{each}x", "size": "1Gi"} for each in volumes] for _, volumes in sets]
    shared = {"pool": "workers", "cpus": 1, "memoryMiB": 1024, "size": 1}
    stack["nodeSets"] = [{"name": each, **shared, "volumeClaims": own} for (each, _), own in zip(sets, claims, strict=True)]
    stack["partitions"] = [{"name": "main", "nodeSets": [each for each, _ in sets], "default": True}]
    stack["healthChecks"] = []
    stack["storage"]["mounts"] = [{"name": mount, "mountPath": "/shared-data", "storageClass": "efs", "size": "1Gi"}]
    try:
        cluster = load_cluster(stack, ROOT, "x")
    except ConfigFaults:
        return
    for at in range(len(sets)):
        pod = set_pod(cluster, at)
        for found in (
            [volume["name"] for volume in pod["volumes"]],
            [place["mountPath"] for place in pod["containers"][0]["volumeMounts"]],
        ):
            assert len(found) == len(set(found))
    nodes = [f"{each}-{ordinal}" for each, _ in sets for ordinal in range(12)]
    programs = [f"{name}-{each}{tail}" for each in PROGRAMS for tail in ("", "-0", "-1")]
    assert set(nodes).isdisjoint(programs)
    assert {each for each, _ in sets}.isdisjoint(programs)
    disks = [f"{volume}-{node}" for (each, volumes) in sets for volume in volumes for node in nodes if re.fullmatch(rf"{each}-\d+", node)]
    assert len(disks) == len(set(disks))
    assert set(disks).isdisjoint(own_claims(cluster))


LABEL = st.from_regex(r"[a-z]([a-z-]{0,3}[a-z])?", fullmatch=True)


@given(LABEL, LABEL, LABEL, LABEL)
def test_names_outside_of_namespaces_are_one_stacks_alone(namespace: str, cluster: str, other_namespace: str, other: str) -> None:
    """`a-b` with `c` and `a` with `b-c` were one name, and the second stack took over the first one's rights."""
    if (namespace, cluster) != (other_namespace, other):
        assert outside_name(namespace, f"{cluster}-x") != outside_name(other_namespace, f"{other}-x")


def test_names_outside_of_a_namespace_without_a_dash_are_what_they_were() -> None:
    assert outside_name("slurm", "dev-home") == "slurm-dev-home"
    assert outside_name("a-b", "c") == "a-b.c"
