"""From EC2 to Slurm and back: an event for a busy machine, and a machine that is replaced. EC2 by moto, the NodeSet controller on a
Kubernetes and a Slurm in memory, and both programs speak with each other over HTTP.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from components.machine_causes import build_machine_causes
from configs.models.node_set import NodeSet
from controllers.nodeset.settings import Ec2Program
from controllers.nodeset.structs import SLURM_NODES
from controllers.runtime import serve
from controllers.runtime.structs import KUBE_NODES, PODS
from slurm.causes import EC2_MAINTENANCE, EC2_SYSTEM
from slurm.check_results import CheckResult, with_result
from slurm.reasons import MAINTENANCE, REMEDY
from tests.support.controllers.ec2.site import NOW, REGION, Amazon, Site
from tests.support.controllers.nodeset.memory_cluster import READY, Cluster
from tests.support.controllers.nodeset.repairs import SINCE, fail
from tests.support.fakes.kubernetes import FakeKubernetes

pytestmark = pytest.mark.anyio
RULES = build_machine_causes(NodeSet(name="gpu", pool="gpu"), asks_ec2=True)
EVENT = ("system-reboot", "scheduled reboot")


class Both:
    """A node set whose machine is an instance of EC2, and the two programs."""

    def __init__(self, server: FakeKubernetes, folder: Path) -> None:
        self.cluster = Cluster(server)
        self.ec2 = Site(server, Amazon(), folder, {"steps": ("RebootMachine", "ReplaceMachine")})
        [self.instance] = self.ec2.amazon.launch()
        self.place(self.instance)

    def place(self, instance: str, boot: str = "boot-1") -> None:
        """A Kubernetes node `machine` on this instance; one of another instance is a new object."""
        status = {"conditions": READY, "nodeInfo": {"bootID": boot}}
        spec = {"providerID": f"aws:///{REGION}a/{instance}"}
        self.cluster.server.put(KUBE_NODES, {"metadata": {"name": "machine"}, "spec": spec, "status": status})

    async def rounds(self, number: int, every_s: float = 30) -> None:
        for _ in range(number):
            await self.ec2.look()
            self.cluster.process.later_s += every_s
            await self.cluster.rounds(1)

    def causes(self) -> dict[str, str]:
        found = self.cluster.server.get(SLURM_NODES, ("slurm", "gpu-0"))["status"]["causes"]
        return {cause["name"]: cause["evidence"] for cause in found}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with FakeKubernetes() as server:
        made = Both(server, tmp_path)
        taking = await serve.listener(posts={"/steps": lambda asked: made.ec2.steps.take(asked)}).start(0, "127.0.0.1")
        made.cluster.process.world.ec2 = Ec2Program(f"http://127.0.0.1:{taking.port}/steps", made.ec2.settings.token)
        yield made
        taking.close()
        await made.ec2.end()
        await made.cluster.process.end()


async def test_event_of_a_busy_machine_drains_it_and_leaves_its_job_alone(both: Both) -> None:
    slurm = both.cluster.slurm
    both.cluster.declare(nodes=1, replicas=1, machineCauses=RULES)
    await both.rounds(4)
    slurm.start_job("gpu-0", 7)
    both.ec2.amazon.schedule(both.instance, EVENT)
    await both.rounds(4)
    assert slurm.reasons["gpu-0"] == f"{MAINTENANCE}machine: condition/{EC2_MAINTENANCE}"
    assert (slurm.words["gpu-0"], slurm.jobs_on) == ({"ALLOCATED", "CLOUD", "DRAIN"}, {"gpu-0": 7})
    assert f"system-reboot of {both.instance} not before 2026-02-08T00:00:00Z" in both.causes()[f"condition/{EC2_MAINTENANCE}"]
    pod = both.cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"]

    slurm.end_job("gpu-0")
    await both.rounds(4)
    assert slurm.words["gpu-0"] == {"IDLE", "CLOUD", "DRAIN"}, "the event is still ahead"
    both.ec2.amazon.schedule(both.instance, (EVENT[0], f"[Completed] {EVENT[1]}"))
    await both.rounds(3)
    assert (slurm.words["gpu-0"], slurm.requeued, slurm.cancelled) == ({"IDLE", "CLOUD"}, [], [])
    assert both.cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"] == pod
    assert both.ec2.amazon.reboots == []


POLICY = {"steps": ["ReplaceMachine"], "waitSeconds": 60, "machines": "EC2"}


async def test_impaired_machine_is_replaced_after_its_job_with_a_clean_record(both: Both) -> None:
    slurm, amazon = both.cluster.slurm, both.ec2.amazon
    both.cluster.declare(nodes=1, replicas=1, machineCauses=RULES, remedies=POLICY)
    await both.rounds(4)
    slurm.start_job("gpu-0", 7)
    amazon.impair(both.instance, "system_status", since=NOW - 600)
    await both.rounds(8)
    assert (slurm.reasons["gpu-0"], amazon.state(both.instance), slurm.jobs_on) == (REMEDY, "running", {"gpu-0": 7})
    slurm.end_job("gpu-0")
    await both.rounds(6)
    assert amazon.state(both.instance) == "terminated"
    assert "DRAIN" in slurm.words["gpu-0"], "no job comes while the machine goes"
    [record] = both.cluster.status()["repairs"]
    assert (record["state"], record["asked"] != "") == ("ReplaceMachine", True)

    [other] = amazon.launch()
    both.cluster.server.remove(KUBE_NODES, ("", "machine"))
    both.cluster.server.remove(PODS, ("slurm", "gpu-0"))
    both.place(other)
    await both.rounds(8)
    assert (slurm.words["gpu-0"], both.causes()) == ({"IDLE", "CLOUD"}, {})
    assert both.ec2.amazon.state(other) == "running"
    assert EC2_SYSTEM not in {each["type"] for each in both.cluster.server.get(KUBE_NODES, ("", "machine"))["status"]["conditions"]}
    assert all(step["machine"] != other for each in both.cluster.status()["repairs"] for step in each["steps"])


async def test_machine_is_rebooted_once_and_returns_with_its_check(both: Both) -> None:
    slurm, amazon = both.cluster.slurm, both.ec2.amazon
    both.cluster.declare(nodes=1, replicas=1, healthChecks=["disk"], remedies={**POLICY, "steps": ["RebootMachine"]})
    await both.rounds(4)
    fail(both.cluster, "gpu-0")
    await both.rounds(8)
    assert amazon.reboots == [both.instance]
    both.place(both.instance, boot="boot-2")
    slurm.extras["gpu-0"] = with_result("", "disk", CheckResult("passed", SINCE)) or ""
    await both.rounds(4)
    assert (slurm.words["gpu-0"], amazon.reboots) == ({"IDLE", "CLOUD"}, [both.instance])


async def test_absent_ec2_program_is_asked_again_and_the_node_stays_drained(both: Both) -> None:
    world = both.cluster.process.world
    there, world.ec2 = world.ec2, Ec2Program("http://127.0.0.1:9/steps", both.ec2.settings.token)
    both.cluster.declare(nodes=1, replicas=1, healthChecks=["disk"], remedies=POLICY)
    await both.rounds(4)
    fail(both.cluster, "gpu-0")
    await both.rounds(8)
    assert both.ec2.amazon.state(both.instance) == "running"
    assert "DRAIN" in both.cluster.slurm.words["gpu-0"]
    world.ec2 = there
    await both.rounds(2)
    assert both.ec2.amazon.state(both.instance) == "terminated"


async def test_node_is_held_when_the_answer_to_an_accepted_reboot_is_lost(both: Both) -> None:
    """Its check passes at that moment. Without the drain a job would begin, and the machine would boot under it."""
    slurm, amazon, take = both.cluster.slurm, both.ec2.amazon, both.ec2.steps.take
    both.cluster.declare(nodes=1, replicas=1, healthChecks=["disk"], remedies={**POLICY, "steps": ["RebootMachine"]})
    await both.rounds(4)
    fail(both.cluster, "gpu-0")

    async def take_and_end(asked: serve.Asked) -> serve.Answer:
        await take(asked)
        slurm.extras["gpu-0"] = with_result("", "disk", CheckResult("passed", SINCE)) or ""
        raise ConnectionError("the program ends before it answers")

    both.ec2.steps.take = take_and_end
    await both.rounds(8)
    assert amazon.reboots == [both.instance]
    assert "DRAIN" in slurm.words["gpu-0"]
    both.ec2.steps.take = take
    both.place(both.instance, boot="boot-2")
    await both.rounds(4)
    assert (slurm.words["gpu-0"], amazon.reboots) == ({"IDLE", "CLOUD"}, [both.instance])
