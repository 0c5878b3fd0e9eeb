"""What a cluster lacks is said all at once, each with its remedy; what it has, or will make itself, is not."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.plan import Plan, Resource
from engine.render import Document, documents
from engine.requirements import Offer, plan_missing

LABELS = {"slipway.dev/pool": "workers"}
IMAGE = "registry.example/slurm:1"
DEFAULT = {"metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}


def node(name: str, *, labels: Any = LABELS, taints: Sequence[Any] = (), images: Sequence[str] = ()) -> dict[str, Any]:
    about = {"name": name, "labels": labels}
    return {"metadata": about, "spec": {"taints": list(taints)}, "status": {"images": [{"names": list(images)}]}}


def pod(image: str = IMAGE, **spec: Any) -> dict[str, Any]:
    return {"nodeSelector": LABELS, "containers": [{"name": "main", "image": image}], **spec}


def declared(kind: str, name: str, **spec: Any) -> Document:
    group = {"PersistentVolumeClaim": "v1", "NodeSet": "slipway.dev/v1alpha1"}.get(kind, "apps/v1")
    manifest = {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "slurm"}, "spec": spec}
    resource = Resource(f"urn:{name}", f"kubernetes:{group}:{kind}", name, inputs=manifest)
    return documents(Plan("slipway", "dev", (resource,), {}))[0]


def workload(pod_spec: dict[str, Any], kind: str = "StatefulSet", **spec: Any) -> Document:
    return declared(kind, "one", template={"spec": pod_spec}, **spec)


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
VOLUME = {"name": "home", "hostPath": {"path": "/srv/home", "type": "DirectoryOrCreate"}}


@pytest.mark.parametrize(
    ("document", "offer", "words"),
    [
        pytest.param(workload(pod()), Offer([node("a", labels={})]), "kubectl label node NAME slipway.dev/pool=workers", id="label"),
        pytest.param(workload(pod()), Offer([node("a", taints=[TAINT])]), "has a taint that the pods do not tolerate", id="taint"),
        pytest.param(workload(pod("localhost/x:1")), Offer([node("a")]), "python -m images push REGISTRY", id="image-of-this-machine"),
        pytest.param(
            workload(pod("localhost/x:1")),
            Offer([node("a", images=["localhost/x:1"]), node("b")]),
            "Image localhost/x:1",
            id="image-on-one-node-of-two",
        ),
        pytest.param(
            declared("PersistentVolumeClaim", "data", storageClassName="efs"), Offer(classes=[DEFAULT]), "There are: standard.", id="class"
        ),
        pytest.param(declared("PersistentVolumeClaim", "data"), Offer(), "no default StorageClass", id="no-default-class"),
        pytest.param(
            workload(pod(), volumeClaimTemplates=[{"spec": {"storageClassName": "gp3"}}]),
            Offer([node("a")], [DEFAULT]),
            "There is no StorageClass gp3",
            id="class-of-a-template",
        ),
        pytest.param(
            workload(pod(volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "lustre"}}])),
            Offer([node("a")]),
            "PersistentVolumeClaim lustre is not in the namespace",
            id="claim",
        ),
        pytest.param(
            workload(pod(volumes=[VOLUME])), Offer([node("a"), node("b")]), "hostPath /srv/home is local to each node", id="host-path"
        ),
    ],
)
def test_what_is_missing_is_said_with_its_remedy(document: Document, offer: Offer, words: str) -> None:
    (said,) = plan_missing([document], offer)
    assert words in said


@pytest.mark.parametrize(
    ("document", "offer"),
    [
        pytest.param(workload(pod()), Offer([node("a")]), id="labelled"),
        pytest.param(
            workload(pod(tolerations=[{"key": "gpu", "value": "yes"}])), Offer([node("a", taints=[TAINT])]), id="tolerated-by-value"
        ),
        pytest.param(workload(pod(tolerations=[{"operator": "Exists"}])), Offer([node("a", taints=[TAINT])]), id="tolerates-everything"),
        pytest.param(workload(pod(), "NodeSet", replicas=0), Offer(), id="set-that-is-asleep"),
        pytest.param(workload(pod("localhost/x:1")), Offer([node("a", images=["localhost/x:1"])]), id="image-that-nodes-have"),
        pytest.param(declared("PersistentVolumeClaim", "data"), Offer(classes=[DEFAULT]), id="default-class"),
        pytest.param(declared("PersistentVolumeClaim", "data", storageClassName=""), Offer(), id="volume-made-by-hand"),
        pytest.param(workload(pod(volumes=[VOLUME])), Offer([node("a")]), id="host-path-of-one-machine"),
    ],
)
def test_what_is_there_is_not_mentioned(document: Document, offer: Offer) -> None:
    assert plan_missing([document], offer) == []


def test_everything_is_said_at_once_and_each_want_once() -> None:
    wants = [workload(pod("localhost/x:1")), declared("Deployment", "two", template={"spec": pod("localhost/x:1")})]
    said = plan_missing([*wants, declared("PersistentVolumeClaim", "data")], Offer([node("a", labels={})]))
    assert len(said) == 3
    assert "StatefulSet slurm/one, Deployment slurm/two" in said[0]
