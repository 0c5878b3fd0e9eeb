"""Whether the process that holds a lease has ended, as its machine's kubelet reports: then nobody has to wait for the lease's end."""

from datetime import datetime

import msgspec

from controllers.runtime.api import Api
from controllers.runtime.structs import Lease, ObjectMeta, Resource


class _Terminated(msgspec.Struct, rename="camel"):
    finished_at: str | None = None


class _State(msgspec.Struct, rename="camel"):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str
    state: _State | None = None
    last_state: _State | None = None


class _Status(msgspec.Struct, rename="camel"):
    container_statuses: list[_Container] | None = None


class _Pod(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    status: _Status = msgspec.field(default_factory=_Status)


_PODS = Resource("v1", "pods", "Pod", _Pod)


async def has_ended(api: Api, namespace: str, lease: Lease, container: str) -> bool:
    """True if the holder's container ended after it took the lease; the holder is `<pod>_<anything>`. Raises ApiError.

    Only a positive answer counts: a pod that is gone may still run on an unreachable machine. The kubelet and the holder are on one
    machine, so their times are of one clock; the kubelet's are whole seconds, rounded down.
    """
    pod, _, _ = (lease.spec.holder_identity or "").partition("_")
    if not pod or lease.spec.acquire_time is None:
        return False
    page = await api.list_page(_PODS, namespace=namespace, fields=f"metadata.name={pod}")
    acquired_at = datetime.fromisoformat(lease.spec.acquire_time)
    ends = [
        state.terminated.finished_at
        for item in page.items
        if item.metadata.name == pod
        for status in item.status.container_statuses or ()
        if status.name == container
        for state in (status.state, status.last_state)
        if state is not None and state.terminated is not None
    ]
    return any(datetime.fromisoformat(end) > acquired_at for end in ends if end)
