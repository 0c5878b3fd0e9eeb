"""Deletion of a pod that no machine has, judged by a real API server: a scheduler that is faster keeps the pod."""

from itertools import count

import msgspec
import pytest
from lightkube.config.kubeconfig import KubeConfig

from controllers.runtime.api import connect
from controllers.runtime.errors import Conflict, NotFound
from controllers.runtime.structs import PODS, Pod
from controllers.runtime.writer import Deletion, Writer
from tests.support.apiserver.server import ApiServer

NAMES = count()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_pod(server: ApiServer) -> Pod:
    spec = {"containers": [{"name": "slurmd", "image": "a"}]}
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"unbound-{next(NAMES)}"}}
    return msgspec.convert(server.post("/api/v1/namespaces/default/pods", {**about, "spec": spec}), Pod)


def bind(server: ApiServer, pod: Pod) -> None:
    """What a scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "machine"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.metadata.name}, "target": target}
    server.post(f"/api/v1/namespaces/default/pods/{pod.metadata.name}/binding", body)


@pytest.mark.anyio
@pytest.mark.parametrize("bound", [False, True], ids=["still-unbound", "bound-meanwhile"])
async def test_pod_goes_only_while_no_machine_has_it(server: ApiServer, bound: bool) -> None:
    pod = make_pod(server)
    if bound:
        bind(server, pod)
    api = connect(KubeConfig.from_file(server.kubeconfig()).get())
    deletion = Deletion(pod.metadata.key, pod.metadata.uid, version=pod.metadata.resource_version)
    try:
        if bound:
            with pytest.raises(Conflict):
                await Writer(api).delete(PODS, deletion)
            assert (await api.get(PODS, *pod.metadata.key)).metadata.deletion_timestamp is None
        else:
            await Writer(api).delete(PODS, deletion)
            with pytest.raises(NotFound):  # at once: no kubelet has to stop anything
                await api.get(PODS, *pod.metadata.key)
    finally:
        await api.close()
