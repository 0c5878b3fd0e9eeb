"""An API server with answers made by hand."""

import json
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass
class CannedServer:
    """An API server on loopback that remembers what it was asked. It answers by `METHOD path`, or by path, and 404 to any other.

    `answers` may be filled at any time; a function makes the answer from the request's body.
    """

    port: int
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict[str, tuple[int, Any]])
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, str, dict[str, str], bytes]])

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def serve(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Makes kinds known, all of them namespaced: `{"apps/v1": ["Deployment"]}`."""
        found: dict[str, list[dict[str, Any]]] = {"/api": [], "/apis": []}
        for version, kinds in groups.items():
            group, _, short = version.rpartition("/")
            listed = [{"resource": f"{kind.lower()}s", "responseKind": {"kind": kind}, "scope": "Namespaced"} for kind in kinds]
            item = {"metadata": {"name": group} if group else {}, "versions": [{"version": short, "resources": listed}]}
            found["/apis" if group else "/api"].append(item)
        self.answers |= {path: (200, {"kind": "APIGroupDiscoveryList", "items": items}) for path, items in found.items()}

    def kubeconfig(self, folder: Path, **user: Any) -> Path:
        """A kubeconfig whose context `canned` is this server."""
        return write_kubeconfig(folder / "canned.kubeconfig", "canned", self.url, **user)


def write_kubeconfig(file: Path, name: str, server: str, **user: Any) -> Path:
    """A kubeconfig with one context, which is the current one."""
    config = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    file.write_text(json.dumps(config))
    return file


@pytest.fixture
def canned() -> Generator[CannedServer]:
    """A running CannedServer without any answer."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            path = self.path.partition("?")[0]
            missing = (404, {"kind": "Status", "reason": "NotFound", "message": "not found"})
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            canned.requests.append((self.command, self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            code, said = canned.answers.get(f"{self.command} {path}") or canned.answers.get(path) or missing
            said = said(body.decode()) if callable(said) else said
            data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 (http.server's names)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing on the tests' output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        canned = CannedServer(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield canned
        server.shutdown()
