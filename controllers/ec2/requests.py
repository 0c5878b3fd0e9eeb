"""Requests of the NodeSet controller for a reboot or a new machine, and the record of those that EC2 was asked for. Pure.

EC2 has no token that makes a repeated reboot harmless. So a reboot's record is written before EC2 is asked, and a recorded reboot is
never repeated. The exception is the process that wrote the record, if it knows that it did not ask. A termination may be repeated. If the
process ends between the record and the request, the controller's `machineTimeoutS` ends the wait.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from controllers.ec2.settings import ACTIONS
from controllers.ec2.statuses import instance_of
from controllers.runtime.step_request import StepRequest
from controllers.runtime.structs import KubeNode, Pod
from names import labels

HOUR_S = 3600
KEPT_S = 48 * HOUR_S
"""How long a record is kept. A ConfigMap has room for the records of twice this time at the highest cap."""


class Record(msgspec.Struct, frozen=True):
    """That EC2 was asked, or was about to be."""

    id: str
    step: str
    instance: str
    at: int
    """In seconds since 1970."""
    by: str = ""
    """The process that wrote it."""


@dataclass(frozen=True)
class Answer:
    """What the controller gets."""

    status: HTTPStatus
    words: str


@dataclass(frozen=True)
class Ask:
    """EC2 is to be asked."""

    action: str
    """`RebootInstances` or `TerminateInstances`."""
    instance: str
    key: str
    """Of the record."""
    record: Record | None
    """To be written before EC2 is asked; None if it exists."""
    expired: tuple[str, ...] = ()
    """Keys of records that are not needed any more."""


def read_request(body: bytes) -> StepRequest:
    """Raises msgspec.DecodeError."""
    return msgspec.json.decode(body, type=StepRequest)


def read_records(data: Mapping[str, str]) -> dict[str, Record]:
    """The records by key. Raises msgspec.DecodeError for a record that cannot be read."""
    return {key: msgspec.json.decode(text, type=Record) for key, text in data.items()}


def key_of(request: StepRequest) -> str:
    """The key of a request's record: an id has signs that no key of a ConfigMap may have."""
    return hashlib.sha256(request.id.encode()).hexdigest()[:32]


def plan_request(
    request: StepRequest,
    cluster: str,
    region: str,
    steps: tuple[str, ...],
    most: int,
    node: KubeNode | None,
    pod: Pod | None,
    records: Mapping[str, Record],
    now: float,
    unasked: Collection[str] = (),
) -> Ask | Answer:
    """Whether to ask EC2. `node` is the request's machine and `pod` its worker, as they are now; `most` is the cap of one hour. `unasked`
    has the keys of records after which EC2 was surely not asked.
    """
    key = key_of(request)
    known = records.get(key)
    if request.cluster != cluster:
        return Answer(HTTPStatus.FORBIDDEN, f"this is the program of the cluster {cluster}, not of {request.cluster}")
    if request.step not in steps:
        return Answer(HTTPStatus.FORBIDDEN, f"no node set has {request.step} with machines: EC2")
    if known is not None and request.step == "RebootMachine" and key not in unasked:
        return Answer(HTTPStatus.OK, f"EC2 has been asked to reboot {known.instance}; a reboot is not asked for twice")
    if node is None or node.spec.provider_id != request.provider_id:
        if known is not None:
            return Answer(HTTPStatus.OK, f"{known.instance} is not the machine {request.machine} any more")
        return Answer(HTTPStatus.CONFLICT, f"{request.machine} is not {request.provider_id} any more")
    instance = instance_of(request.provider_id, region)
    if instance is None:
        return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, f"{request.provider_id or 'no provider ID'} is no EC2 instance in {region}")
    if (fault := _fault_of_worker(request, pod)) is not None:
        return Answer(HTTPStatus.CONFLICT, fault)
    ask = Ask(ACTIONS[request.step], instance, key, None, tuple(old_key for old_key, record in records.items() if record.at < now - KEPT_S))
    if known is not None:
        return ask
    if sum(record.at > now - HOUR_S for record in records.values()) >= most:
        return Answer(HTTPStatus.TOO_MANY_REQUESTS, f"{most} machines were rebooted or replaced within an hour (cluster.ec2.maxPerHour)")
    return Ask(ask.action, instance, key, Record(request.id, request.step, instance, int(now)), ask.expired)


def _fault_of_worker(request: StepRequest, pod: Pod | None) -> str | None:
    """The token gives access to the machines of workers only."""
    pod_labels = pod.metadata.labels if pod is not None else {}
    is_worker = (pod_labels.get(labels.CLUSTER), pod_labels.get(labels.NODESET)) == (request.cluster, request.node_set)
    if pod is None or not is_worker or pod.spec.node_name != request.machine:
        return f"{request.node} of the node set {request.node_set} is not on {request.machine}"
    return None
