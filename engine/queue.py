"""Reads the jobs and nodes of a live cluster through the API server, from the program beside slurmrestd.

Needs `get` on `services/proxy` and on the Secret with the cluster's JWT key. After an error, the jobs are unknown, never an empty list.
"""

import base64
import binascii
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from changes.jobs import QueueError, read_queue
from changes.story import Queue
from engine.api import Api, RefusedError
from engine.faults import UnreachableError
from engine.render import Key, Sort
from names import labels
from slurm.tokens import mint

_SERVICE = Sort("", "Service")
_SELECTOR = f"{labels.PART_OF}=slipway,{labels.COMPONENT}=slurmrestd"
_PORT = "jobs"
"""The port's name in slurmrestd's Service."""
_KEY = "jwt_hs256.key"
_USER = "slurm"
"""slurmrestd and squeue show all jobs to this user, even if PrivateData is set."""
_LIFE_S = 120
_T = TypeVar("_T")


class SilentError(Exception):
    """Slurm did not answer a question; the message says why."""


def read(api: Api, namespace: str) -> Queue:
    """The jobs of the Slurm cluster in a namespace, or the reason why they are unknown."""
    try:
        return Queue(ask(api, namespace, "queue", read_queue))
    except SilentError as error:
        return Queue(unknown=str(error))


def ask(api: Api, namespace: str, what: str, understand: Callable[[object], _T]) -> _T:
    """Gets the list `what` from the program beside slurmrestd. `understand` parses its JSON, and raises ValueError for a wrong answer.
    Raises SilentError."""
    try:
        services = api.list(_SERVICE, namespace, labelSelector=_SELECTOR)
        if len(services) != 1:
            names = ", ".join(service["metadata"]["name"] for service in services)
            raise SilentError(f"namespace {namespace} has {names or 'no'} Service of slurmrestd; one cluster is expected there")
        metadata = services[0]["metadata"]
        token = mint(_key(api, metadata), _USER, time.time(), _LIFE_S)
        path = f"/api/v1/namespaces/{metadata['namespace']}/services/{metadata['name']}:{_PORT}/proxy/{what}/"
        return understand(api.request("GET", path, headers={"X-SLURM-USER-TOKEN": token}).json())
    except UnreachableError as error:
        raise SilentError(f"the cluster does not answer any more: {error}") from None
    except RefusedError as error:
        raise SilentError(_refusal(error)) from None
    except ValueError as error:
        raise SilentError(f"the answer cannot be read: {error}") from None


def _key(api: Api, service_metadata: Mapping[str, Any]) -> bytes:
    name = f"{service_metadata['labels'][labels.CLUSTER]}-jwt"
    secret = api.find(Key("", "Secret", service_metadata["namespace"], name)) or {}
    try:
        return base64.b64decode(secret.get("data", {})[_KEY], validate=True)
    except (KeyError, binascii.Error):
        raise QueueError(f"Secret {name} has no {_KEY}") from None


def _refusal(error: RefusedError) -> str:
    hint = ""
    if error.code == 403:
        hint = " (to read jobs, this user needs `get` on services/proxy and on the cluster's JWT Secret)"
    if error.code == 404:
        hint = " (an older slurmrestd pod does not list it; the next `up` brings one that does)"
    if error.code in (502, 503, 504):
        hint = " (slurmctld or slurmrestd is not ready)"
    return f"{error}{hint}"
