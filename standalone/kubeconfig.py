"""The kubeconfig, as kubectl reads it: files by precedence, the context, and what a connection needs that lightkube leaves aside.

lightkube reads one file and plain credentials. KUBECONFIG as a list, newer credential plugins, proxies and impersonation are added here.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx2
import yaml
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from standalone.faults import UnreachableError

LOCAL_CONTEXT = "slipway-local"
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_EXEC = "client.authentication.k8s.io/"


@dataclass(frozen=True)
class Target:
    """The cluster that a kubeconfig chooses."""

    context: str
    server: str

    def __str__(self) -> str:
        return f'context "{self.context}", server {self.server}'


@dataclass(frozen=True)
class Where:
    """Which kubeconfig, and which context of it; None: its default."""

    kubeconfig: str | None
    context: str | None

    def __str__(self) -> str:
        chosen = f'context "{self.context}"' if self.context else "the current context"
        return f"{chosen} of {self.kubeconfig or 'the default kubeconfig'}"


def find(root: Path, kubeconfig: str | None, context: str | None) -> Where:
    """The kubeconfig by precedence: option, environment, the local cluster's own, kubectl's default.

    The local cluster's kubeconfig stands in only where no other context is named, and for its own context it goes before KUBECONFIG.
    """
    if kubeconfig and not Path(kubeconfig).exists():
        raise UnreachableError(f"{kubeconfig}: no such file (--kubeconfig).")
    local = root / ".slipway" / "kubeconfig"
    own = str(local) if context in (None, LOCAL_CONTEXT) and local.exists() else None
    environment = os.environ.get("KUBECONFIG")
    return Where(kubeconfig or (own or environment if context == LOCAL_CONTEXT else environment or own), context)


def connect(where: Where) -> tuple[httpx2.Client, Target]:
    """A client of the chosen cluster, which has sent nothing yet. Raises UnreachableError where none is chosen, or it cannot be used."""
    files = [Path(part).expanduser() for part in (where.kubeconfig or "~/.kube/config").split(os.pathsep) if part]
    try:
        config = _merged([file for file in files if file.exists()])
        name = where.context or config.get("current-context")
        if not name:
            raise UnreachableError(
                f"No cluster is chosen ({where}): start the local one with `make up`, or give --context or --kubeconfig."
            )
        if name not in (there := [str(context["name"]) for context in config["contexts"]]):
            raise UnreachableError(_no_context(where, str(name), there))
        chosen = cast(Any, KubeConfig).from_dict(config).get(str(name))
        cluster, user = (_entry(config, kind, getattr(chosen.context, kind)) for kind in ("cluster", "user"))
        timeout = httpx2.Timeout(60, connect=10)
        parameters = ConnectionParams(timeout=timeout, proxy=cluster.get("proxy-url"))
        settings: dict[str, Any] = cast(Any, parameters).httpx_params(chosen._replace(user=chosen.user or User()))
    except (ConfigError, OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise UnreachableError(f"{where}: the kubeconfig cannot be used: {type(error).__name__}: {error}") from error
    client = httpx2.Client(**settings, headers=[("User-Agent", "slipway"), *_impersonation(user)])
    if server_name := cluster.get("tls-server-name"):

        def name_server(request: httpx2.Request) -> None:
            request.extensions["sni_hostname"] = server_name

        client.event_hooks = {"request": [name_server]}
    return client, Target(str(name), chosen.cluster.server)


def _no_context(where: Where, name: str, there: list[str]) -> str:
    start = " Start the local cluster with `make up`." if name == LOCAL_CONTEXT else ""
    return (
        f'{where.kubeconfig or "The kubeconfig"} has no context "{name}". There are: {", ".join(there) or "none"}. Choose with --context, '
        f"or give another file with --kubeconfig.{start}"
    )


def _merged(files: list[Path]) -> dict[str, Any]:
    """Several files together: of a name that is there twice, and of the current context, the first counts."""
    merged: dict[str, Any] = {"clusters": [], "users": [], "contexts": []}
    for file in files:
        config: dict[str, Any] = yaml.safe_load(file.read_text()) or {}
        merged["current-context"] = merged.get("current-context") or config.get("current-context")
        for entry in (*(config.get("clusters") or ()), *(config.get("users") or ())):
            _complete(entry.get("cluster") or entry.get("user") or {}, file.parent)
        for kind in ("clusters", "users", "contexts"):
            merged[kind] = [*(config.get(kind) or ()), *merged[kind]]  # of one name, lightkube takes the last
            for entry in merged[kind]:
                entry[kind[:-1]] = entry.get(kind[:-1]) or {}
    return merged


def _complete(entry: dict[str, Any], folder: Path) -> None:
    """Paths from the file's own folder; a credential plugin as lightkube takes it, told what kubectl tells it."""
    for key in _FILES:
        if entry.get(key):
            entry[key] = str(folder / Path(entry[key]).expanduser())
    if plugin := cast(dict[str, Any], entry.get("exec") or {}):
        version = str(plugin["apiVersion"])
        info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        plugin["env"] = [*(plugin.get("env") or ()), {"name": "KUBERNETES_EXEC_INFO", "value": json.dumps(info)}]
        if version == f"{_EXEC}v1":
            plugin["apiVersion"] = f"{_EXEC}v1beta1"  # both answer alike
        if "/" in plugin["command"]:
            plugin["command"] = str(folder / plugin["command"])


def _entry(config: Mapping[str, Any], kind: str, name: str | None) -> dict[str, Any]:
    found = [entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name]
    return found[-1] if found else {}


def _impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    groups = [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    return [("Impersonate-User", str(user["as"])), *groups] if user.get("as") else []
