"""The controller's rights are what its code uses: nothing refused, nothing to spare. Run against an API server that notes every request."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from components import ec2
from components.controllers import rights
from controllers.files.progress import DAEMON_PODS, FileProgress, Report, hash_files
from controllers.nodeset.check_jobs import JOBS
from controllers.nodeset.declared import DeclaredSets
from controllers.nodeset.rounds import SWEEP_S
from controllers.nodeset.structs import NODESETS, SLURM_NODES
from controllers.runtime.clock import SYSTEM
from controllers.runtime.informer import Informer
from controllers.runtime.lease import Election
from controllers.runtime.structs import CONFIG_MAPS, KUBE_NODES, PODS
from controllers.runtime.writer import Writer
from names import annotations, finalizers
from tests.support.controllers.ec2.site import site
from tests.support.controllers.nodeset.check_jobs import SPEC, put_cron_job
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster
from tests.support.controllers.nodeset.repairs import MACHINE_POLICY, fail, repaired
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.requests import used


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def use_of_lists(cluster: Cluster) -> None:
    """A set that is on no list any more is deleted, and the list released."""
    meta: dict[str, Any] = {"namespace": "slurm", "name": "dev-node-sets"}
    cluster.server.put(CONFIG_MAPS, {"metadata": {**meta, "finalizers": [finalizers.NODE_SETS]}, "data": {}})
    cluster.declare(replicas=0)
    cluster.server.patch(NODESETS, KEY, {"metadata": {"annotations": {annotations.DECLARED_IN: meta["name"]}}})
    process = cluster.process
    looking = DeclaredSets(process.nodesets, process.pins, process.api, Writer(process.api), SYSTEM)
    await process.caught_up()
    await looking.look()
    await cluster.rounds(3)
    cluster.server.objects.delete(cluster.server.objects.kind("v1", "configmaps"), ("slurm", meta["name"]))
    await process.caught_up()
    await looking.look()


async def use_of_slurm_nodes(cluster: Cluster) -> None:
    """What is known of a node is written at a sweep, and deleted at the next one when Slurm has the node no more."""
    cluster.process.later_s += SWEEP_S
    await cluster.rounds(1)
    for name in ("gpu-1", "gpu-2", "gpu-3"):
        del cluster.slurm.words[name]
    cluster.process.later_s += SWEEP_S
    await cluster.rounds(1)
    assert cluster.server.keys(SLURM_NODES) == {("slurm", "gpu-0")}


async def use_of_machines(cluster: Cluster) -> None:
    """A node that a check finds failing has its machine replaced, as its set says."""
    cluster.declare(replicas=1, placement="Pinned", healthChecks=["disk"], remedies=MACHINE_POLICY)
    await cluster.rounds(5)
    fail(cluster, "gpu-0")
    await repaired(cluster, {})
    assert ("", "machine") not in list(cluster.server.keys(KUBE_NODES))


async def use_of_checks(cluster: Cluster) -> None:
    """A check looks at a node again, right after its pod was replaced."""
    put_cron_job(cluster.server, "disk")
    cluster.declare(**SPEC)
    cluster.machine("machine")
    await cluster.rounds(5)
    fail(cluster, "gpu-1")
    await repaired(cluster, {}, rounds=8)
    assert ("slurm", "dev-check-disk-asked") in list(cluster.server.keys(JOBS))


async def use_of_files(cluster: Cluster) -> None:
    """How far Slurm's files are is written into slurmctld's pod."""
    meta = {"namespace": "slurm", "name": "dev-slurmctld-0"}
    cluster.server.put(PODS, {"metadata": meta, "status": {"podIP": "10.0.0.1"}})
    cluster.server.put(CONFIG_MAPS, {"metadata": {"namespace": "slurm", "name": "dev-slurm-config"}, "data": {"slurm.conf": "a"}})
    api = cluster.process.api
    maps, pods = Informer(api, CONFIG_MAPS, namespace="slurm"), Informer(api, DAEMON_PODS, namespace="slurm")
    following = [asyncio.create_task(each.run()) for each in (maps, pods)]
    await maps.synced.wait()
    await pods.synced.wait()

    async def ask(_: str) -> Report:
        return Report(hash_files(maps.store.values()), "live", "")

    await FileProgress(maps, pods, Writer(api), SYSTEM, "pod", ask).look()
    for task in following:
        task.cancel()


@pytest.mark.anyio
async def test_roles_have_exactly_the_verbs_that_the_controller_uses() -> None:
    claim: dict[str, Any] = {"metadata": {"name": "scratch"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    async with FakeKubernetes() as server:
        cluster = Cluster(server)
        server.put(KUBE_NODES, {"metadata": {"name": "machine"}})
        retention = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        cluster.declare(replicas=2, placement="Pinned", volumeClaimTemplates=[claim], volumeClaimRetention=retention)
        await cluster.rounds(5)
        cluster.declare(replicas=1, placement="Pinned", volumeClaimTemplates=[claim], volumeClaimRetention=retention)
        await cluster.rounds(5)
        await use_of_slurm_nodes(cluster)
        await use_of_machines(cluster)
        await use_of_checks(cluster)
        election = Election(cluster.process.api, ("slurm", "dev-nodeset-controller"), f"pod-{time.time()}")
        await election.acquire()
        holding = asyncio.create_task(election.hold())
        await election.release()
        holding.cancel()
        server.objects.delete(server.objects.kind(NODESETS.api_version, NODESETS.plural), KEY)
        await cluster.rounds(5)
        assert not set(server.keys(PODS))
        await use_of_lists(cluster)
        await use_of_files(cluster)
        await cluster.process.end()
        asked = used(server.requests)
    allowed = {(one["group"], one["resource"], verb) for one in rights() for verb in one["verbs"]}
    assert asked - allowed == set(), "the code does what its role does not allow"
    assert allowed - asked == set(), "the role allows what the code never does"


@pytest.mark.anyio
async def test_roles_have_exactly_the_verbs_that_the_program_for_ec2_uses(tmp_path: Path) -> None:
    """It asks by moto, and records what it asks for."""
    with mock_aws():
        async with site(tmp_path, 2, labels_places=True) as (made, instances):
            made.amazon.schedule(instances[0], ("instance-stop", "hardware"))
            made.amazon.place(instances[0], "nn-1", "nn-2", "nn-3")
            await made.look()
            assert [(await made.ask(number, instances[number]))[0] for number in range(2)] == [200, 200]
            requests = made.server.requests
            asked = used(requests)
            records = {one.key for one in requests if one.plural == "configmaps" and one.verb != "create"}
    allowed = {(one["group"], one["resource"], verb) for one in ec2.rights("dev") for verb in one["verbs"]}
    assert (asked - allowed, allowed - asked) == (set(), set())
    assert {name for _, name in records} == {one["name"] for one in ec2.rights("dev") if "name" in one}
