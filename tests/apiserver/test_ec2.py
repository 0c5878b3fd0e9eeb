"""The program for EC2 against a real API server, with the rights that its roles give it: conditions reach the status of Kubernetes nodes
and leave the kubelet's alone, and requests are recorded. EC2 by moto.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from moto import mock_aws

from components import ec2
from components.pods import PodDefaults
from configs.models.ec2 import Ec2
from controllers.ec2 import steps
from controllers.ec2.settings import Settings
from controllers.ec2.source import Source
from controllers.ec2.steps import Steps
from controllers.runtime import serve
from controllers.runtime.api import Api
from slurm.causes import EC2_MAINTENANCE
from slurm.topology import EC2_LAYER
from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.small_stack import becomes
from tests.support.components.examples import PODS
from tests.support.controllers.ec2.site import REGION, TOKEN, Amazon, client
from tests.support.fakes.clock import eventually
from tests.support.patience import patience

pytestmark = pytest.mark.anyio
SPACE = "ec2-program"
IN_SPACE: PodDefaults = {**PODS, "namespace": SPACE}
MACHINE = "ip-10-0-3-7"
NODE = f"/api/v1/nodes/{MACHINE}"
EVENT = ("system-reboot", "scheduled reboot")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Real:
    """A Kubernetes node whose instance is one of moto's, with a worker on it, and the program with its own ServiceAccount."""

    def __init__(self, server: ApiServer, api: Api, folder: Path) -> None:
        self._server = server
        self.amazon = Amazon()
        [self.instance] = self.amazon.launch()
        self.make_machine()
        token = folder / "token"
        token.write_text(TOKEN)
        self._settings = Settings(cluster="dev", namespace=SPACE, region=REGION, token=token, steps=("RebootMachine",), labels_places=True)
        self._api = api
        self.source = Source(self._settings, api, client())
        self.steps = Steps(self._settings, api, client())
        self.following = asyncio.create_task(self.source.machines.run())

    def admin(self, method: str, path: str, body: Mapping[str, Any], kind: str = "application/json") -> dict[str, Any]:
        with self._server.client() as admin:
            answer = admin.request(method, path, content=json.dumps(body), headers={"Content-Type": kind})
        assert answer.is_success, answer.text
        return answer.json()

    def make_machine(self) -> None:
        node = {"metadata": {"name": MACHINE}, "spec": {"providerID": f"aws:///{REGION}a/{self.instance}"}}
        self._server.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
        self.beat("kubelet is posting ready status")
        labels = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
        spec = {"nodeName": MACHINE, "containers": [{"name": "slurmd", "image": "registry.example/slurm:1"}]}
        self._server.post(f"/api/v1/namespaces/{SPACE}/pods", {"metadata": {"name": "gpu-0", "labels": labels}, "spec": spec})

    def remove(self) -> None:
        self.admin("DELETE", NODE, {})
        self.admin("DELETE", f"/api/v1/namespaces/{SPACE}/pods/gpu-0", {"gracePeriodSeconds": 0})

    def beat(self, words: str) -> None:
        """As a kubelet writes its status: a strategic merge patch."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": words}
        self.admin("PATCH", f"{NODE}/status", {"status": {"conditions": [ready]}}, "application/strategic-merge-patch+json")

    def layers(self) -> dict[str, str]:
        with self._server.client() as admin:
            labels: dict[str, str] = admin.get(NODE).json()["metadata"].get("labels", {})
        return {name: value for name, value in labels.items() if name.startswith(EC2_LAYER)}

    def conditions(self) -> dict[str, tuple[str, str]]:
        with self._server.client() as admin:
            found = admin.get(NODE).json()["status"]["conditions"]
        return {each["type"]: (each["status"], each["message"] if each["type"] == "Ready" else each["reason"]) for each in found}

    async def look(self) -> None:
        with self._server.client() as admin:
            version = admin.get(NODE).json()["metadata"]["resourceVersion"]

        def is_heard() -> bool:
            node = self.source.machines.get(("", MACHINE))
            return node is not None and node.metadata.resource_version == version

        await eventually(is_heard, 30)
        await becomes(self.has_looked)

    async def has_looked(self) -> bool:
        """Looks once. A right may be missing at first: the authorizer learns of roles by a watch."""
        return await self.source.look() and not self.source.fault()

    async def ask(self) -> tuple[int, str]:
        body = {"id": "uid/gpu-0/RebootMachine/1", "step": "RebootMachine", "cluster": "dev", "nodeSet": "gpu", "node": "gpu-0"}
        body |= {"machine": MACHINE, "providerID": f"aws:///{REGION}a/{self.instance}"}
        asked = serve.Asked(headers={"authorization": f"Bearer {TOKEN}"}, body=json.dumps(body).encode())
        answer = await self.steps.take(asked)
        return answer.status, answer.body.decode()


@pytest.fixture
async def real(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Real]:
    monkeypatch.setattr(steps, "DECIDED_S", steps.DECIDED_S * patience())
    if f"namespace/{SPACE}" not in server.run_kubectl("get", "namespaces", "-o", "name"):
        server.make_namespace(SPACE)
    items = [ec2.build_service_account(IN_SPACE, Ec2(region=REGION)), *ec2.build_roles(IN_SPACE)]
    server.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/dev-ec2/token"
    token = server.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    trusting = ssl.create_default_context(cafile=str(server.certificates))
    headers = {"Authorization": f"Bearer {token}"}
    api = Api(httpx2.AsyncClient(base_url=server.url, headers=headers, verify=trusting, timeout=30 * patience()))
    with mock_aws():
        made = Real(server, api, tmp_path)
        yield made
        made.following.cancel()
        await asyncio.gather(made.following, return_exceptions=True)
        made.remove()
        await api.close()


async def test_program_does_its_work_with_its_own_rights(real: Real) -> None:
    await real.look()
    assert real.conditions() == {"Ready": ("True", "kubelet is posting ready status")}
    real.amazon.schedule(real.instance, EVENT)
    await real.look()
    assert real.conditions()[EC2_MAINTENANCE] == ("True", "SystemReboot")
    real.beat("kubelet still is")
    assert real.conditions() == {"Ready": ("True", "kubelet still is"), EC2_MAINTENANCE: ("True", "SystemReboot")}
    real.amazon.schedule(real.instance, ("instance-stop", "hardware"))
    await real.look()
    assert real.conditions() == {
        "Ready": ("True", "kubelet still is"),
        EC2_MAINTENANCE: ("False", "NoEvent"),
        "EC2RetirementScheduled": ("True", "InstanceStop"),
    }

    assert [status for status, _ in (await real.ask(), await real.ask())] == [200, 200]
    assert real.amazon.reboots == [real.instance]
    path = f"/api/v1/namespaces/{SPACE}/configmaps/dev-ec2-requests"
    [record] = real.admin("GET", path, {})["data"].values()
    assert json.loads(record)["instance"] == real.instance


@pytest.mark.parametrize(
    ("theirs", "labels"),
    [
        pytest.param({}, {f"{EC2_LAYER}1": "nn-1", f"{EC2_LAYER}2": "nn-2"}, id="a machine without labels"),
        pytest.param({f"{EC2_LAYER}1": "eks"}, {f"{EC2_LAYER}1": "eks"}, id="a machine that EKS has labelled"),
    ],
)
async def test_machine_is_labelled_with_its_place_by_its_status_alone(real: Real, theirs: dict[str, str], labels: dict[str, str]) -> None:
    """Without the right to change anything else of a node; a label of others stays."""
    real.admin("PATCH", NODE, {"metadata": {"labels": theirs}}, "application/merge-patch+json")
    real.amazon.place(real.instance, "nn-1", "nn-2")
    await real.look()
    assert real.layers() == labels


async def test_new_node_of_the_same_name_gets_nothing_of_the_old_one(real: Real) -> None:
    """What was heard of is gone by the time of the write: the API server refuses to apply to another uid, also a status."""
    await real.look()
    real.amazon.schedule(real.instance, EVENT)
    real.following.cancel()
    before = real.source.machines.get(("", MACHINE))
    real.admin("DELETE", NODE, {})
    node = {"metadata": {"name": MACHINE}, "spec": {"providerID": f"aws:///{REGION}a/i-0def"}}
    real.admin("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
    real.beat("kubelet of the new machine")
    assert real.source.machines.get(("", MACHINE)) == before, "the program has not heard of it"
    assert await real.source.look()
    assert real.conditions() == {"Ready": ("True", "kubelet of the new machine")}
