"""Questions and orders to the local cluster's API server, through kubectl. Waiting happens here, deciding in pure functions."""

import http.client
import json
import re
import ssl
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from local import layout, node, outside
from local.commands import run, wait_until
from local.layout import Node, Paths
from local.rootfs import Recipe

MANIFESTS = Path(__file__).parent / "manifests"


class Api:
    """The API server as the cluster's administrator."""

    def __init__(self, paths: Paths, kubectl: Path) -> None:
        self._paths = paths
        self._kubectl = (str(kubectl), "--kubeconfig", str(paths.kubeconfig))

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Output of kubectl. Raises LocalError with its words."""
        return run([*self._kubectl, *arguments], stdin=stdin, timeout_s=timeout_s)

    def get(self, *arguments: str) -> Any:
        """`kubectl get ... -o json`, parsed."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def is_ready(self) -> bool:
        """True when the API server itself reports that it is ready."""
        try:
            context = ssl.create_default_context(cafile=str(self._paths.pki / "ca.crt"))
            connection = http.client.HTTPSConnection(str(layout.HOST), layout.API_PORT, timeout=2, context=context)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def apply(self, text: str) -> None:
        """Server-side apply, as the owner of what is applied."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def wait_for_nodes(self, since: Mapping[Node, datetime | None], timeout_s: float) -> None:
        """Returns when all nodes are Ready, by a report later than `since` if given, and have their GPUs.

        A kubelet that registers removes capacity that no device plugin reports, so GPUs are added after its report and checked again.
        """

        def settled() -> bool:
            known_nodes = {item["metadata"]["name"]: item for item in self.get("node")["items"]}
            ready = [wanted for wanted, at in since.items() if wanted.name in known_nodes and is_node_ready(known_nodes[wanted.name], at)]
            lacking = [lacking_node for lacking_node in ready if lacks_gpus(lacking_node, known_nodes[lacking_node.name])]
            for lacking_node in lacking:
                self.kubectl(
                    "patch", "node", lacking_node.name, "--subresource=status", "--type=merge", "-p", node.capacity_patch(lacking_node)
                )
            return len(ready) == len(since) and not lacking

        log = self._paths.logs / f"kubelet-{next(iter(since)).name}.log"
        wait_until("all nodes Ready, with their GPUs", settled, timeout_s=timeout_s, log=log, interval_s=0.3)

    def wait_for_deployments(self, timeout_s: float, *names: str) -> None:
        """Returns when the deployments, given as namespace/name, are available."""

        def available() -> bool:
            items = self.get("deployment", "--all-namespaces")["items"]
            ready = {f"{i['metadata']['namespace']}/{i['metadata']['name']}" for i in items if is_deployment_ready(i)}
            return set(names) <= ready

        wait_until(f"{', '.join(names)} available", available, timeout_s=timeout_s, interval_s=0.3)


def is_node_ready(item: Mapping[str, Any], since: datetime | None) -> bool:
    """True when the kubelet has reported Ready, at `since` or later when given."""
    for condition in item["status"].get("conditions", []):
        if condition["type"] == "Ready" and condition["status"] == "True":
            reported = datetime.fromisoformat(condition["lastHeartbeatTime"])
            return since is None or reported >= since.replace(microsecond=0)
    return False


def lacks_gpus(wanted: Node, item: Mapping[str, Any]) -> bool:
    """True when the node's status does not show its simulated GPUs."""
    shown = item["status"].get("capacity", {}).get(layout.GPU_RESOURCE, "0")
    return wanted.gpus > 0 and shown != str(wanted.gpus)


def is_deployment_ready(item: Mapping[str, Any]) -> bool:
    """True when the newest version of a deployment, and nothing else of it, is available."""
    status, wanted = item.get("status", {}), item["spec"]["replicas"]
    return (
        status.get("observedGeneration") == item["metadata"]["generation"]
        and status.get("updatedReplicas") == wanted
        and status.get("availableReplicas") == wanted
    )


def render_manifests(paths: Paths, recipes: Mapping[str, Recipe], resolvers: list[str]) -> str:
    """All manifests of `local/manifests`, with addresses, image names and the machine's resolvers filled in."""
    values = {
        "CLUSTER_DOMAIN": layout.CLUSTER_DOMAIN,
        "DNS": str(layout.DNS),
        "FORWARD": outside.render_forward(resolvers),
        "VOLUMES": str(paths.volumes),
        **{name.upper().replace("-", "_"): recipe.reference for name, recipe in recipes.items()},
    }
    texts = [path.read_text() for path in sorted(MANIFESTS.glob("*.yaml"))]
    # A pod template that names its configuration's content rolls when that changes.
    values["CONTENT"] = sha256("".join([*texts, *resolvers]).encode()).hexdigest()[:16]
    # A shell's "$VOL_DIR" stays as it is: only names in braces are ours.
    return re.sub(r"\$\{([A-Z_]+)\}", lambda match: values[match[1]], "---\n".join(texts))
