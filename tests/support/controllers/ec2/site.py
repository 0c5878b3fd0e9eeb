"""EC2 by moto, with instances as machines of a Kubernetes in memory, and the program for EC2 in front of them.

moto knows instances, their states, what does not exist, and dry runs. It has no scheduled events and no failed checks: they are set on its
instances here, and moto puts them into its answers as it does all else. It has no DescribeInstanceTopology: that is added to it here.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import boto3
import httpx2
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response

from controllers.ec2.client import Ec2
from controllers.ec2.settings import Settings
from controllers.ec2.source import Source
from controllers.ec2.steps import Steps
from controllers.runtime import serve
from controllers.runtime.api import connect
from controllers.runtime.clock import Clock
from controllers.runtime.structs import KUBE_NODES, PODS
from names import annotations
from tests.support.fakes.clock import eventually
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.patience import patience

REGION = "eu-west-1"
TOKEN = "0123456789abcdef"
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC).timestamp()


def _describe_instance_topology(asked: Any) -> ActionResult:
    """As its API reference describes it: an instance that has no place, or does not run, has no network nodes."""
    asked.error_on_dryrun()
    reservations = asked.ec2_backend.get_reservations_by_instance_ids(asked._get_param("InstanceIds", []))
    instances = [each for reservation in reservations for each in reservation.instances]
    places = {each.id: getattr(each, "network_nodes", []) if each.state == "running" else [] for each in instances}
    return ActionResult({"Instances": [{"InstanceId": name, "NetworkNodes": nodes} for name, nodes in places.items()]})


cast(Any, EC2Response).describe_instance_topology = _describe_instance_topology


@cache
def client() -> Ec2:
    """One for all tests: it takes a fifth of a second."""
    return Ec2(REGION)


@cache
def _account() -> Any:
    return cast(Any, boto3).client("ec2", region_name=REGION)


@contextmanager
def over_the_network() -> Generator[None]:
    """boto3's requests leave the process, and moto sees none of them."""
    botocore_stubber.enabled = False
    try:
        yield
    finally:
        botocore_stubber.enabled = True


class Amazon:
    """The account, as AWS acts in it."""

    def __init__(self) -> None:
        self.reboots: list[str] = []
        """Instances that were rebooted, in order."""

    def launch(self, number: int = 1) -> list[str]:
        found = _account().run_instances(ImageId="ami-12c6146b", MinCount=number, MaxCount=number)["Instances"]
        for each in found:
            self._note_reboots(each["InstanceId"])
        return [each["InstanceId"] for each in found]

    def schedule(self, instance: str, *events: tuple[str, str]) -> None:
        """Codes and descriptions; each not before the eighth of February. None: nothing is scheduled any more."""
        at = datetime(2026, 2, 8, tzinfo=UTC)
        self._instance(instance).events = [{"Code": code, "Description": words, "NotBefore": at} for code, words in events]

    def impair(self, instance: str, check: str, status: str = "impaired", since: float | None = None) -> None:
        """`check` is system_status or instance_status."""
        details = {"Name": "reachability", "Status": "failed"}
        details |= {"ImpairedSince": datetime.fromtimestamp(since, UTC)} if since is not None else {}
        found = self._instance(instance)
        kind = cast(type[Any], found.__class__)
        found.__class__ = type(kind.__name__, (kind,), {check: {"Status": status, "Details": [details]}})

    def place(self, instance: str, *network_nodes: str) -> None:
        """Where an instance is in EC2's network, from the top."""
        self._instance(instance).network_nodes = list(network_nodes)

    def state(self, instance: str) -> str:
        return self._instance(instance).state

    def forget(self, instance: str) -> None:
        """What EC2 does an hour after the end of an instance."""
        for reservation in self._backend().reservations.values():
            reservation.instances = [each for each in reservation.instances if each.id != instance]

    def _note_reboots(self, instance: str) -> None:
        found, reboots = self._instance(instance), self.reboots
        reboot = found.reboot

        def noted() -> None:
            reboots.append(instance)
            reboot()

        found.reboot = noted

    def _instance(self, instance: str) -> Any:
        return self._backend().get_instance(instance)

    def _backend(self) -> Any:
        return cast(Any, ec2_backends)[DEFAULT_ACCOUNT_ID][REGION]


class Site:
    """One cluster `dev`, whose machines are called m0 and so on, with a worker gpu-0 and so on each."""

    def __init__(self, server: FakeKubernetes, amazon: Amazon, folder: Path, settings: dict[str, Any]) -> None:
        self.server, self.amazon = server, amazon
        self.later_s = 0.0
        self.clock = Clock(wall=lambda: NOW + self.later_s, now=lambda: time.monotonic() + self.later_s)
        token = folder / "token"
        token.write_text(f"{TOKEN}\n")
        self.settings = replace(Settings(cluster="dev", namespace="slurm", region=REGION, token=token), **settings)
        self.api = connect(server.config())
        self.ec2 = client()
        self.source = Source(self.settings, self.api, self.ec2, self.clock)
        self.steps = Steps(self.settings, self.api, self.ec2, self.clock)
        self.port = 0
        self._following = asyncio.create_task(self.source.machines.run())

    def put_machine(self, number: int, instance: str, conditions: list[dict[str, Any]] | None = None) -> None:
        name, zone = f"m{number}", f"{REGION}a"
        ready = {"type": "Ready", "status": "True"}
        self.server.put(
            KUBE_NODES,
            {
                "metadata": {"name": name},
                "spec": {"providerID": f"aws:///{zone}/{instance}"},
                "status": {"conditions": conditions or [ready]},
            },
        )
        labels = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
        meta = {"namespace": "slurm", "name": f"gpu-{number}", "labels": labels}
        self.server.put(PODS, {"metadata": meta, "spec": {"nodeName": name}})

    async def look(self) -> bool:
        """One look of the program, from what it has heard of all machines."""

        def stored() -> dict[str, str]:
            nodes = [self.server.get(KUBE_NODES, key)["metadata"] for key in self.server.keys(KUBE_NODES)]
            return {node["name"]: node["resourceVersion"] for node in nodes}

        def heard() -> dict[str, str]:
            return {each.metadata.name: each.metadata.resource_version for each in self.source.machines.store.values()}

        await eventually(lambda: self.source.machines.synced.is_set() and stored() == heard())
        return await self.source.look()

    def conditions(self, number: int) -> dict[str, dict[str, Any]]:
        found = self.server.get(KUBE_NODES, ("", f"m{number}"))["status"]["conditions"]
        return {each["type"]: each for each in found}

    def begin(self, number: int) -> str | None:
        """When announced maintenance of a machine begins, as its Kubernetes node says."""
        return self.server.get(KUBE_NODES, ("", f"m{number}"))["metadata"].get("annotations", {}).get(annotations.EC2_MAINTENANCE_BEGINS)

    def layers(self, number: int) -> list[str]:
        """Where a machine is in EC2's network, as its Kubernetes node says, from the top."""
        labels = self.server.get(KUBE_NODES, ("", f"m{number}"))["metadata"].get("labels", {})
        return [labels[name] for name in sorted(labels) if name.startswith("topology.k8s.aws/network-node-layer-")]

    def told(self, number: int) -> dict[str, tuple[str, str]]:
        """Status and reason of our conditions."""
        return {name: (each["status"], each["reason"]) for name, each in self.conditions(number).items() if name.startswith("EC2")}

    async def ask(self, number: int, instance: str, token: str = TOKEN, **changes: Any) -> tuple[int, str]:
        """Posts a request as the NodeSet controller does."""
        body = {
            "id": f"uid/gpu-{number}/{changes.get('step', 'RebootMachine')}/1770091506",
            "step": "RebootMachine",
            "cluster": "dev",
            "nodeSet": "gpu",
            "node": f"gpu-{number}",
            "machine": f"m{number}",
            "providerID": f"aws:///{REGION}a/{instance}",
            "causes": ["check/gpu"],
            **changes,
        }
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=10 * patience()) as client:
            answer = await client.post(f"http://127.0.0.1:{self.port}/steps", json=body, headers=headers)
        return answer.status_code, answer.text

    async def end(self) -> None:
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
        await self.api.close()


@asynccontextmanager
async def site(folder: Path, machines: int = 1, **settings: Any) -> AsyncGenerator[tuple[Site, list[str]]]:
    """A site and its instances. The steps that node sets have are both, unless the settings say otherwise."""
    settings = {"steps": ("RebootMachine", "ReplaceMachine"), **settings}
    async with FakeKubernetes() as server:
        made = Site(server, Amazon(), folder, settings)
        instances = made.amazon.launch(machines)
        for number, instance in enumerate(instances):
            made.put_machine(number, instance)
        taking = await serve.listener(posts={"/steps": lambda asked: made.steps.take(asked)}).start(0, "127.0.0.1")
        made.port = taking.port
        try:
            yield made, instances
        finally:
            taking.close()
            await made.end()
