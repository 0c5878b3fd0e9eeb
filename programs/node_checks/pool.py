"""The check of a node pool at deployment: are there enough Kubernetes nodes of it, ready, with their GPUs?

Runs in a Job with the standard library only; its argument is in pool_settings.py. If something is missing, it ends with 1 and a
line about that, which Kubernetes keeps as the pod's termination message.
"""

import json
import ssl
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Any

from slurm.logs import ERROR, teller
from slurm.pump import take_stderr

from .pool_settings import ExpectedNodes, Taint, from_json

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_POLL_S = 2
_CALL_S = 10


def shortfall(wanted: ExpectedNodes, nodes: list[dict[str, Any]]) -> str:
    """What is missing, as one line; empty when there are enough nodes. `nodes` are those with the pool's labels, as the API gives them."""
    refusals = {node["metadata"]["name"]: refusal(wanted, node) for node in nodes}
    fit = sorted(name for name, said in refusals.items() if not said)
    if len(fit) >= wanted.count:
        return ""
    labels = ",".join(f"{key}={value}" for key, value in sorted(wanted.labels.items()))
    gpus = f" and {wanted.gpus} {wanted.gpu_resource}" if wanted.gpus else ""
    found = f"{len(fit)} found" + (f": {', '.join(fit)}" if fit else "")
    others = "".join(f"; {name} {said}" for name, said in sorted(refusals.items()) if said)
    return f'pool "{wanted.pool}": {wanted.count} nodes wanted with {labels}{gpus}, {found}{others}'


def refusal(wanted: ExpectedNodes, node: dict[str, Any]) -> str:
    """Why a node does not count; empty when it does. `node` is a Kubernetes Node."""
    gpus = int(node["status"].get("allocatable", {}).get(wanted.gpu_resource, 0))
    if not any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", [])):
        return "is not ready"
    for each in node["spec"].get("taints", []):
        taint = Taint(each["key"], each.get("value", ""), each["effect"])
        if taint.effect != "PreferNoSchedule" and taint not in wanted.taints:
            return f"has the taint {taint.key}={taint.value}:{taint.effect}, which the pool does not name"
    return f"has {gpus}" if gpus < wanted.gpus else ""


def read_nodes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The nodes with those labels. Raises OSError (urllib's errors are such) when the API server does not answer or refuses."""
    selector = urllib.parse.quote(",".join(f"{key}={value}" for key, value in labels.items()))
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    token = (_ACCOUNT / "token").read_text()
    request = urllib.request.Request(
        f"https://{host}:{port}/api/v1/nodes?labelSelector={selector}", headers={"Authorization": f"Bearer {token}"}
    )
    context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=_CALL_S, context=context) as answer:  # noqa: S310 - Kubernetes' own address, https
        return json.load(answer)["items"]


def main() -> int:
    wanted = from_json(sys.argv[1])
    end = time.monotonic() + wanted.wait_s
    while True:
        try:
            missing = shortfall(wanted, read_nodes(wanted.labels))
        except OSError as error:
            missing = f'pool "{wanted.pool}": the Kubernetes API did not give its nodes: {error}'
        if not missing or time.monotonic() > end:
            break
        time.sleep(_POLL_S)
    if missing:
        teller("pool")(missing, ERROR)
    return 1 if missing else 0


if __name__ == "__main__":
    take_stderr("pool")
    sys.exit(main())
