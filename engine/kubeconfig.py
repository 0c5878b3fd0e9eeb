"""The kubeconfig, as kubectl reads it. lightkube reads one file and plain credentials; this adds KUBECONFIG as a list, newer credential
plugins, proxies and impersonation.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import httpx2
import yaml
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from engine.faults import UnreachableError

LOCAL_CONTEXT = "slipway-local"
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_EXEC = "client.authentication.k8s.io/"
_UNUSABLE = (
    *(ConfigError, OSError, ValueError, LookupError, TypeError, AttributeError, ImportError),
    *(yaml.YAMLError, httpx2.InvalidURL),
)


@dataclass(frozen=True)
class Target:
    """The cluster that a kubeconfig chooses."""

    context: str
    server: str
    trusts: str = "the system's certificate authorities"
    """What the server's certificate is verified with."""

    def __str__(self) -> str:
        return f'context "{self.context}", server {self.server}'

    def distrust(self, reason: str) -> str:
        """The error message if the server's certificate is not trusted."""
        return (
            f"The certificate of {self.server} is not trusted ({reason}). It was checked against {self.trusts}. Get a new kubeconfig of "
            "the cluster, or set its certificate-authority there. If the certificate has another name, set tls-server-name."
        )


@dataclass(frozen=True)
class Where:
    """A kubeconfig and a context of it; None means the default."""

    kubeconfig: str | None
    context: str | None

    def __str__(self) -> str:
        chosen = f'context "{self.context}"' if self.context else "the current context"
        return f"{chosen} of {self.kubeconfig or 'the default kubeconfig'}"


def find(root: Path, kubeconfig: str | None, context: str | None) -> Where:
    """The kubeconfig by precedence: option, environment, the local cluster's own, kubectl's default.

    The local cluster's kubeconfig is used only if no other context is named. For its own context, it precedes KUBECONFIG.
    """
    if kubeconfig and not Path(kubeconfig).exists():
        raise UnreachableError(f"{kubeconfig}: no such file (--kubeconfig).")
    local_kubeconfig = root / ".slipway" / "kubeconfig"
    local_file = str(local_kubeconfig) if context in (None, LOCAL_CONTEXT) and local_kubeconfig.exists() else None
    environment = os.environ.get("KUBECONFIG")
    return Where(kubeconfig or (local_file or environment if context == LOCAL_CONTEXT else environment or local_file), context)


def connect(where: Where) -> tuple[httpx2.Client, Target]:
    """A client of the chosen cluster, which has sent nothing yet. Raises UnreachableError if the kubeconfig chooses none or is unusable."""
    files = [Path(part).expanduser() for part in (where.kubeconfig or "~/.kube/config").split(os.pathsep) if part]
    try:
        config = _merged([file for file in files if file.exists()])
        name = where.context or config.get("current-context")
        if not name:
            raise UnreachableError(
                f"No cluster is chosen ({where}): start the local one with `make up`, or give --context or --kubeconfig."
            )
        if str(name) not in (context_names := [str(context.get("name")) for context in config["contexts"]]):
            raise UnreachableError(_no_context(where, str(name), context_names))
        chosen, cluster, user = _chosen(config, str(name))
        server = chosen.cluster.server
        proxy = _proxy(where, server, cluster)
        parameters = ConnectionParams(timeout=httpx2.Timeout(60, connect=10), proxy=proxy)
        settings: dict[str, Any] = cast(Any, parameters).httpx_params(chosen._replace(user=chosen.user or User()))
        settings["trust_env"] = False  # the environment's proxy is chosen above, as Go does it
        client = httpx2.Client(**settings, headers=[("User-Agent", "slipway"), *_impersonation(user)])
    except _UNUSABLE as error:
        raise UnreachableError(f"{where}: the kubeconfig cannot be used: {type(error).__name__}: {error}") from error
    if server_name := cluster.get("tls-server-name"):

        def name_server(request: httpx2.Request) -> None:
            request.extensions["sni_hostname"] = server_name

        client.event_hooks = {"request": [name_server]}
    return client, Target(str(name), server, _trusts(chosen.context.cluster, cluster))


def _chosen(config: Mapping[str, Any], name: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The context as lightkube has it, and its cluster and user as they are written. Mistakes in other entries do not matter."""
    context = _entries(config, "context", name)
    named = context[-1]["context"]
    clusters, users = (_entries(config, kind, named.get(kind)) for kind in ("cluster", "user"))
    for entry in (*clusters, *users):
        _complete(entry.get("cluster") or entry.get("user") or {}, entry["folder"])
    for entry in users:  # `password: 123` is a number to YAML
        entry["user"] = {key: str(value) if type(value) in (int, float) else value for key, value in entry["user"].items()}
    chosen = cast(Any, KubeConfig).from_dict({"contexts": context, "clusters": clusters, "users": users}).get(context[-1]["name"])
    return chosen, clusters[-1]["cluster"], users[-1]["user"] if users else {}


def _trusts(name: str, cluster: Mapping[str, Any]) -> str:
    """What the server's certificate is verified with, as it is named in the kubeconfig."""
    authority = next((key for key in ("certificate-authority", "certificate-authority-data") if cluster.get(key)), None)
    return (
        f'{authority} of cluster "{name}"'
        if authority
        else f'the system\'s certificate authorities: cluster "{name}" has no certificate-authority'
    )


def _proxy(where: Where, server: str, cluster: Mapping[str, Any]) -> str | None:
    """The proxy as Go chooses it: the cluster's own, else the environment's, which is never used for loopback. ALL_PROXY is ignored."""
    url = urlsplit(server)
    proxy_url, source = cluster.get("proxy-url"), "proxy-url"
    if not proxy_url:
        proxies = getproxies_environment()
        proxy_url, source = proxies.get(url.scheme), f"{url.scheme.upper()}_PROXY"
        if not proxy_url or _is_direct(url.hostname or "", url.port or (443 if url.scheme == "https" else 80), proxies.get("no", "")):
            return None
    proxy = str(proxy_url) if "://" in str(proxy_url) else f"http://{proxy_url}"
    if not proxy.lower().startswith(("http://", "https://")):
        raise UnreachableError(
            f"{where}: {source} names a {proxy.partition(':')[0]} proxy, and Slipway can use an HTTP proxy only. Set one there, "
            "or remove it and reach the API server through a tunnel (ssh -L)."
        )
    return proxy


def _is_direct(host: str, port: int, no_proxy: str) -> bool:
    """True if the environment's proxy is not used: for loopback and the entries of NO_PROXY."""
    entries = [entry.strip().lower() for entry in no_proxy.split(",") if entry.strip()]
    ip = None
    with contextlib.suppress(ValueError):
        ip = ip_address(host)
    if host == "localhost" or "*" in entries or (ip and ip.is_loopback):
        return True
    return any(_holds(entry.removesuffix(f":{port}"), host, ip) for entry in entries)


def _holds(entry: str, host: str, ip: IPv4Address | IPv6Address | None) -> bool:
    """True if an entry of NO_PROXY is this host, its domain or its network."""
    if ip:
        with contextlib.suppress(ValueError):
            return ip in ip_network(entry.strip("[]"), strict=False)
        return False
    domain = entry.removeprefix("*")
    return host == domain or host.endswith(f".{domain.removeprefix('.')}")


def _no_context(where: Where, name: str, context_names: list[str]) -> str:
    start = " Start the local cluster with `make up`." if name == LOCAL_CONTEXT else ""
    return (
        f'{where.kubeconfig or "The kubeconfig"} has no context "{name}". There are: {", ".join(context_names) or "none"}. '
        f"Choose one with --context, or give another file with --kubeconfig.{start}"
    )


def _merged(files: list[Path]) -> dict[str, Any]:
    """Merges several files. The first current-context counts, and the first entry of a name."""
    merged: dict[str, Any] = {"clusters": [], "users": [], "contexts": []}
    for file in files:
        config: dict[str, Any] = yaml.safe_load(file.read_text()) or {}
        merged["current-context"] = merged.get("current-context") or config.get("current-context")
        for kind in ("clusters", "users", "contexts"):
            merged[kind] = [*(config.get(kind) or ()), *merged[kind]]  # of one name, lightkube takes the last
            for entry in merged[kind]:
                entry[kind[:-1]] = entry.get(kind[:-1]) or {}
                entry.setdefault("folder", file.absolute().parent)
    return merged


def _complete(entry: dict[str, Any], folder: Path) -> None:
    """Resolves paths from the file's own folder, and gives a credential plugin what lightkube and the plugin expect."""
    for key in _FILES:
        if entry.get(key):
            entry[key] = str(folder / Path(entry[key]).expanduser())
    if plugin := cast(dict[str, Any], entry.get("exec") or {}):
        version = str(plugin["apiVersion"])
        exec_info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        plugin["env"] = [*(plugin.get("env") or ()), {"name": "KUBERNETES_EXEC_INFO", "value": json.dumps(exec_info)}]
        if version == f"{_EXEC}v1":
            plugin["apiVersion"] = f"{_EXEC}v1beta1"  # both versions have the same answer
        if "/" in plugin["command"]:
            plugin["command"] = str(folder / plugin["command"])


def _entries(config: Mapping[str, Any], kind: str, name: str | None) -> list[dict[str, Any]]:
    """The entry of this name, as a list of one entry or none."""
    return [entry for entry in config[f"{kind}s"] if name is not None and str(entry.get("name")) == str(name)][-1:]


def _impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    groups = [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    return [("Impersonate-User", str(user["as"])), *groups] if user.get("as") else []
