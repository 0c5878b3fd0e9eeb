"""The parts of Kubernetes objects that the controllers read, decoded straight from the API server's bytes.

Unused fields are left out: msgspec skips them, which keeps thousands of objects small. Names and meaning are Kubernetes' own.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace and name of an object; the namespace is empty for kinds that have none."""


class _Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    pass


class OwnerReference(_Struct, frozen=True):
    """The object's owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(_Struct, frozen=True):
    """An object's metadata. Times are RFC 3339."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


class PartialObject(_Struct, frozen=True):
    """Any object, reduced to its metadata."""

    metadata: ObjectMeta


class Condition(_Struct, frozen=True):
    """One condition of a pod; status is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class Waiting(_Struct, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Begun(_Struct, frozen=True):
    """A container that runs, or has run; no more of it is read."""


class ContainerState(_Struct, frozen=True):
    """One of the three is set. Only `waiting` may need a person to act."""

    waiting: Waiting | None = None
    running: Begun | None = None
    terminated: Begun | None = None


class ContainerStatus(_Struct, frozen=True):
    """One container of a pod."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None


class PodSpec(_Struct, frozen=True):
    """The pod's machine; None until the scheduler has decided."""

    node_name: str | None = None


class PodStatus(_Struct, frozen=True):
    """The pod's state. `reason` and `message` say why a kubelet refused or ended it."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    start_time: str | None = None


class Pod(_Struct, frozen=True):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(_Struct, frozen=True):
    """Keeps pods off a node."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeCondition(_Struct, frozen=True):
    """One condition of a Kubernetes node, by its kubelet or another program; status is True, False or Unknown. A missing time is null."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class KubeNodeSpec(_Struct, frozen=True):
    """What administrators and the cloud set."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class KubeNodeInfo(_Struct, frozen=True):
    """The kubelet's information about its machine."""

    boot_id: str = msgspec.field(default="", name="bootID")


class KubeNodeStatus(_Struct, frozen=True):
    """The kubelet's report. Amounts are Kubernetes quantities: `15500m`, `131900Mi`."""

    allocatable: dict[str, str] = {}
    capacity: dict[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    node_info: KubeNodeInfo = KubeNodeInfo()


class KubeNode(_Struct, frozen=True):
    """A Kubernetes node: a machine, not a Slurm node."""

    metadata: ObjectMeta
    spec: KubeNodeSpec = KubeNodeSpec()
    status: KubeNodeStatus = KubeNodeStatus()


class ConfigMap(_Struct, frozen=True):
    """A ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] = {}


class LeaseSpec(_Struct, frozen=True):
    """The leader. Times are RFC 3339 with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(_Struct, frozen=True):
    """A Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


@dataclass(frozen=True)
class Unread:
    """An object that could not be decoded."""

    metadata: ObjectMeta
    fault: str
    """Why, with the path in the object."""
    raw: bytes
    """The whole object in JSON."""


@dataclass(frozen=True)
class Resource(Generic[T]):
    """A kind of object: where it lives in the API, and the struct that it is read into."""

    api_version: str
    plural: str
    kind: str
    struct: type[T]
    namespaced: bool = True
    is_metadata_only: bool = False
    """True: lists and watches bring nothing but the metadata, which is small. Source: Kubernetes' API concepts, "Metadata-only fetches"."""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path on the API server; without a namespace, for all namespaces."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{within}/{self.plural}{tail}"


PODS = Resource("v1", "pods", "Pod", Pod)
KUBE_NODES = Resource("v1", "nodes", "Node", KubeNode, namespaced=False)
CONFIG_MAPS = Resource("v1", "configmaps", "ConfigMap", ConfigMap)
CLAIMS = Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim", PartialObject)
BUDGETS = Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", PartialObject)
EVENTS = Resource("events.k8s.io/v1", "events", "Event", PartialObject)
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease", Lease)
