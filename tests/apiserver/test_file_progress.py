"""How far Slurm's files are, as Kubernetes itself keeps it on slurmctld's pod: beside the kubelet's conditions, annotation and all."""

import json
from typing import Any

import msgspec

from controllers.files.progress import DAEMON_PODS, DaemonPod, Verdict, build_event, build_status, find_verdict
from controllers.runtime.structs import EVENTS
from names import annotations, conditions, writers
from tests.support.apiserver.server import ApiServer

NAMESPACE = "file-progress"
AT = "2026-11-23T03:00:00Z"


def apply(server: ApiServer, manifest: dict[str, Any]) -> DaemonPod:
    with server.client() as client:
        asked = {"fieldManager": writers.SLIPWAY, "force": "true"}
        kind = {"Content-Type": "application/apply-patch+yaml"}
        body = json.dumps({"apiVersion": "v1", "kind": "Pod", **manifest})
        answer = client.patch(DAEMON_PODS.path(NAMESPACE, "dev-slurmctld-0", "status"), params=asked, headers=kind, content=body)
        assert answer.status_code == 200, answer.text
        return msgspec.json.decode(answer.content, type=DaemonPod)


def test_condition_and_hash_are_written_at_once_beside_the_kubelets(server: ApiServer) -> None:
    server.make_namespace(NAMESPACE)
    about = {"name": "dev-slurmctld-0", "namespace": NAMESPACE, "annotations": {"slipway.dev/files": "7.2"}}
    spec = {"containers": [{"name": "slurmctld", "image": "a"}]}
    server.post(DAEMON_PODS.path(NAMESPACE), {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec})
    with server.client() as client:
        ready = {"status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}}
        path, kind = DAEMON_PODS.path(NAMESPACE, "dev-slurmctld-0", "status"), {"Content-Type": "application/merge-patch+json"}
        assert client.patch(path, headers=kind, content=json.dumps(ready)).status_code == 200
        pod = msgspec.json.decode(client.get(path).content, type=DaemonPod)
    for verdict in (Verdict("a" * 12, "Refused", "no MinJobAge"), Verdict("b" * 12, "Live", "all have them")):
        event = build_event(pod, verdict, AT, "pod")
        assert event
        server.post(EVENTS.path(NAMESPACE), event)
        pod = apply(server, build_status(pod, verdict, AT))
        assert find_verdict(pod) == (verdict, AT)
        assert {each.type for each in pod.status.conditions} == {"Ready", conditions.FILES_LIVE}
        assert pod.metadata.annotations == {"slipway.dev/files": "7.2", annotations.FILES_HASH: verdict.files}
