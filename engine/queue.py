"""Jobs and nodes of a live cluster, for previews and status: asked for through the API server, from the program beside slurmrestd.

Needs `get` on `services/proxy` and on the Secret with the cluster's JWT key. Whatever goes wrong makes the jobs unknown, with the reason,
and never an empty list.
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
"""slurmrestd and squeue show all jobs to it, whatever PrivateData says."""
_LIFE_S = 120
_T = TypeVar("_T")


class SilentError(Exception):
    """Slurm has not told what it was asked for; the text says why."""


def read(api: Api, namespace: str) -> Queue:
    """The jobs of the Slurm cluster in a namespace, or why they are unknown."""
    try:
        return Queue(ask(api, namespace, "queue", read_queue))
    except SilentError as error:
        return Queue(unknown=str(error))


def ask(api: Api, namespace: str, what: str, understand: Callable[[object], _T]) -> _T:
    """What the program beside slurmrestd lists under that name, as `understand` makes it of its JSON; a ValueError of that is a wrong
    answer. Raises SilentError."""
    try:
        services = api.list(_SERVICE, namespace, labelSelector=_SELECTOR)
        if len(services) != 1:
            names = ", ".join(each["metadata"]["name"] for each in services)
            raise SilentError(f"namespace {namespace} has {names or 'no'} Service of slurmrestd; one cluster is expected there")
        about = services[0]["metadata"]
        token = mint(_key(api, about), _USER, time.time(), _LIFE_S)
        path = f"/api/v1/namespaces/{about['namespace']}/services/{about['name']}:{_PORT}/proxy/{what}/"
        return understand(api.request("GET", path, headers={"X-SLURM-USER-TOKEN": token}).json())
    except UnreachableError as error:
        raise SilentError(f"the cluster does not answer any more: {error}") from None
    except RefusedError as error:
        raise SilentError(_refusal(error)) from None
    except ValueError as error:
        raise SilentError(f"the answer cannot be read: {error}") from None


def _key(api: Api, about: Mapping[str, Any]) -> bytes:
    name = f"{about['labels'][labels.CLUSTER]}-jwt"
    secret = api.find(Key("", "Secret", about["namespace"], name)) or {}
    try:
        return base64.b64decode(secret.get("data", {})[_KEY], validate=True)
    except (KeyError, binascii.Error):
        raise QueueError(f"Secret {name} has no {_KEY}") from None


def _refusal(error: RefusedError) -> str:
    hint = ""
    if error.code == 403:
        hint = " (a preview that tells the fate of jobs may `get` services/proxy and the cluster's JWT Secret)"
    if error.code == 404:
        hint = " (an older slurmrestd pod does not list it; the next `up` brings one that does)"
    if error.code in (502, 503, 504):
        hint = " (slurmctld or slurmrestd is not ready)"
    return f"{error}{hint}"
