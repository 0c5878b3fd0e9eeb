"""Finds the login Service of a Slipway cluster and its ssh command. kubectl is needed only for a Service without an external address."""

import os
import re
import selectors
import shlex
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from engine.api import Api
from engine.faults import SlipwayError
from engine.render import Sort
from names import labels

_SERVICE, _NODE = Sort("", "Service"), Sort("", "Node")


@dataclass(frozen=True)
class Login:
    """Where and as whom to log in."""

    host: str
    port: int
    user: str
    key: Path
    forward: tuple[str, ...] = ()
    """The command that forwards the port, if the Service has no address."""

    @property
    def instructions(self) -> list[str]:
        """The command lines that a user types to log in."""
        return [*([f"{shlex.join(self.forward)} &"] if self.forward else []), shlex.join(self.command())]

    def command(self, *more: str) -> list[str]:
        """The ssh command line; a local cluster is recreated often, so its host key is not remembered."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", *more)
        return [
            *("ssh", "-i", str(self.key), "-p", str(self.port)),
            *(word for option in options for word in ("-o", option)),
            f"{self.user}@{self.host}",
        ]


def login_address(service: Any, nodes: Sequence[Any]) -> tuple[str, int] | None:
    """Host and port of the login Service: a load balancer's address, else a node port. None if it cannot be reached from outside."""
    port = service["spec"]["ports"][0]
    for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress", []):
        return ingress.get("ip") or ingress["hostname"], port["port"]
    if "nodePort" in port:
        addresses = [a for node in nodes for a in node["status"]["addresses"]]
        for kind in ("ExternalIP", "InternalIP"):
            for address in addresses:
                if address["type"] == kind:
                    return address["address"], port["nodePort"]
    return None


@contextmanager
def find_login(api: Api, namespace: str, user: str, key: Path) -> Generator[Login]:
    """The login Service of `namespace`. If it has no address, `kubectl port-forward` runs during the block. Raises SlipwayError."""
    services = api.list(_SERVICE, namespace, labelSelector=f"{labels.COMPONENT}=login")
    if not services:
        raise SlipwayError(
            f"namespace {namespace} of {api} has no login Service. Check that the stack is deployed there: kubectl get all -n {namespace}"
        )
    service = services[0]
    port = service["spec"]["ports"][0]
    nodes = api.list(_NODE) if "nodePort" in port else []
    if address := login_address(service, nodes):
        yield Login(*address, user, key)
        return
    if not (program := os.environ.get("KUBECTL") or shutil.which("kubectl")):
        reason = "has no address outside the cluster, and kubectl, which could forward to it, is not installed"
        raise SlipwayError(f"Service {service['metadata']['name']} {reason}. Install kubectl, or set KUBECTL.")
    where = api.where
    options = [*(["--kubeconfig", where.kubeconfig] if where.kubeconfig else []), *(["--context", where.context] if where.context else [])]
    forward = (program, *options, "--namespace", namespace, "port-forward", f"service/{service['metadata']['name']}")
    with _forwarded([*forward, ":22"]) as local:
        yield Login("127.0.0.1", local, user, key, (*forward, f"{local}:22"))


@contextmanager
def _forwarded(command: list[str], timeout_s: float = 30) -> Generator[int]:
    """The local port of a `kubectl port-forward` that runs during the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield _local_port(process, timeout_s)
        finally:
            process.terminate()


def _local_port(process: subprocess.Popen[str], timeout_s: float) -> int:
    assert process.stdout
    output, deadline = "", monotonic() + timeout_s
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while (remaining_s := deadline - monotonic()) > 0 and ready.select(remaining_s):
            if not (line := process.stdout.readline()):
                break
            output += line
            if match := re.match(r"Forwarding from 127\.0\.0\.1:(\d+) ", line):
                return int(match[1])
    raise SlipwayError(f"kubectl port-forward did not reach the login pod: {output.strip() or 'it printed nothing'}")
