"""A bare Kubernetes API for one test session: etcd and kube-apiserver on free loopback ports, and nothing that acts on what is stored.

No kubelet, scheduler or controller runs, so pods stay Pending, and deleting in the foreground never ends. Users are told by token: `admin`
may do everything, any other name what RBAC gives it.
"""

import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from local.binaries import Cache
from local.layout import find_paths
from local.packages import find_missing, install
from tests.support.patience import patience

ROOT = Path(__file__).parents[3]
_START_S = 90.0


@dataclass(frozen=True)
class ApiServer:
    """A running API server."""

    url: str
    folder: Path
    programs: Mapping[str, Path]

    @property
    def certificates(self) -> Path:
        """The server's own certificate and its CA."""
        return self.folder / "pki" / "apiserver.crt"

    @property
    def kubectl(self) -> Path:
        """The kubectl of the same version."""
        return self.programs["kubectl"]

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig file for a user; the context is called `bare`."""
        file = self.folder / f"{user.replace(':', '_')}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bare", "cluster": {"server": self.url, "certificate-authority": str(self.certificates)}}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "bare", "context": {"cluster": "bare", "user": user}}],
            "current-context": "bare",
        }
        if not file.exists():  # a program may be reading it
            file.write_text(json.dumps(config))
        return file

    @contextmanager
    def client(self, user: str = "admin") -> Generator[httpx2.Client]:
        """Plain HTTP to the API, as a user."""
        headers = {"Authorization": f"Bearer {user}"}
        with httpx2.Client(base_url=self.url, headers=headers, verify=_trusting(self.certificates), timeout=30 * patience()) as client:
            yield client

    def run_kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """kubectl as admin; its output, errors too. Fails with it when kubectl does."""
        command = [str(self.kubectl), "--kubeconfig", str(self.kubeconfig()), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180 * patience(), check=False)
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def make_namespace(self, name: str) -> None:
        """A namespace of a test's own."""
        self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Creates an object as admin; gives it as the server has it."""
        with self.client() as client:
            answer = client.post(path, json=dict(body))
        assert answer.status_code < 300, answer.text
        return answer.json()


@contextmanager
def serve(folder: Path) -> Generator[ApiServer]:
    """A running API server with its state in `folder`; its two processes end with the block, or with this process."""
    programs = _programs()
    pki = folder / "pki"
    pki.mkdir(parents=True)
    keys = [programs["kubeadm"], "init", "phase", "certs", "sa", "--cert-dir", pki]
    subprocess.run(keys, check=True, capture_output=True, timeout=60 * patience())
    tokens = folder / "tokens.csv"
    tokens.write_text("admin,admin,1,system:masters\n")
    client_port, peer_port, port = free_ports(3)
    server = ApiServer(f"https://127.0.0.1:{port}", folder, programs)
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    etcd = ["etcd", "--data-dir", folder / "etcd", "--listen-client-urls", client, "--advertise-client-urls", client]
    etcd += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync"]
    api = [programs["kube-apiserver"], "--etcd-servers", client, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", pki]
    api += ["--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", pki / "sa.pub"]
    api += ["--service-account-signing-key-file", pki / "sa.key", "--service-cluster-ip-range", "198.19.0.0/16"]
    # Nothing makes service accounts here, so pods do without.
    api += ["--authorization-mode", "RBAC", "--token-auth-file", tokens, "--disable-admission-plugins", "ServiceAccount"]
    api += ["--allow-privileged", "--profiling=false", "--endpoint-reconciler-type", "none"]
    with ExitStack() as running:
        running.enter_context(run_process("etcd", [str(part) for part in etcd], folder))
        log = running.enter_context(run_process("kube-apiserver", [str(part) for part in api], folder))
        _wait_until_ready(server, log)
        yield server


def _programs() -> Mapping[str, Path]:
    """Kubernetes' programs, built where the cache lacks them (minutes, once), and etcd from Debian."""
    if (shutil.which("etcd")) is None:
        install(find_missing())
    cache = Cache(find_paths(ROOT).cache)
    return cache.find() or cache.build(print)


@contextmanager
def run_process(name: str, command: list[str], folder: Path, env: Mapping[str, str] | None = None) -> Generator[Path]:
    """A program in the background, its output in a log; gives the log's path. The kernel ends it if this process is killed."""
    log = folder / f"{name}.log"
    with log.open("w") as sink:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdout=sink, stderr=sink, stdin=subprocess.DEVNULL, env=env
        )
    try:
        yield log
    finally:
        process.kill()
        process.wait(timeout=30 * patience())


def _wait_until_ready(server: ApiServer, log: Path) -> None:
    began = time.monotonic()
    while time.monotonic() - began < _START_S * patience():
        if server.certificates.exists():
            try:
                with server.client() as client:
                    if client.get("/readyz").status_code == 200:
                        return
            except httpx2.TransportError:
                pass
        time.sleep(0.1)
    raise AssertionError(f"the API server is not ready after {time.monotonic() - began:.0f} s:\n{log.read_text()[-3000:]}")


def _trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates))


def free_ports(number: int) -> list[int]:
    """Ports of the loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
