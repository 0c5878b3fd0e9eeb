"""The end of `make up`: jobs of a plain user over ssh, from outside the pods, and then how to log in.

Data comes from kubectl (where the login Service listens) and ssh; nothing is changed but the user's own home. Knows nothing of how
the stack was made: it works against any Slipway cluster whose login Service it can reach.
"""

import io
import json
import re
import selectors
import shlex
import subprocess
import tarfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

_KUBECTL_S = 30

TWO_NODES = """#!/bin/bash
#SBATCH --job-name=two-nodes --nodes=2 --ntasks-per-node=1 --output=two-nodes.out
srun --label hostname
"""

TWO_GPUS = """#!/bin/bash
#SBATCH --job-name=two-gpus --gres=gpu:2 --output=two-gpus.out
echo "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
for device in /dev/nvidia[0-9]; do
  # The device cgroup answers "Operation not permitted"; a simulated device that is ours answers "No such device".
  case $( { : <"$device"; } 2>&1) in *"not permitted"*) echo "$device refused" ;; *) echo "$device ours" ;; esac
done
"""

PACKAGE = """set -e
cd "$(mktemp -d)"
mkdir -p hello/DEBIAN hello/usr/bin
printf '%s\\n' 'Package: slipway-hello' 'Version: 1' 'Architecture: all' 'Maintainer: no' 'Description: says where' >hello/DEBIAN/control
printf '%s\\n' '#!/bin/sh' 'echo "slipway-hello on $(hostname)"' >hello/usr/bin/slipway-hello
chmod 0755 hello/usr/bin/slipway-hello
dpkg-deb --root-owner-group --build hello hello.deb
chmod -R a+rX .
sudo -n apt-get install --yes --reinstall ./hello.deb
"""
"""An admin's install in a login session, of a package that needs no archive to be reachable."""


class FirstJobError(Exception):
    """The cluster is there but the first job did not finish; the message says what to look at."""


@dataclass(frozen=True)
class Login:
    """Where and as whom to log in."""

    host: str
    port: int
    user: str
    key: Path
    forward: tuple[str, ...] = ()
    """The command that keeps the way to that port open, where there is no other."""

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


def login_address(service: Any, nodes: Any) -> tuple[str, int] | None:
    """Host and port of the login Service, from `kubectl get service,node -o json`: a load balancer's address, else a node port.

    None when the Service cannot be reached from outside the pods.
    """
    port = service["spec"]["ports"][0]
    for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress", []):
        return ingress.get("ip") or ingress["hostname"], port["port"]
    if "nodePort" in port:
        addresses = [a for node in nodes["items"] for a in node["status"]["addresses"]]
        for kind in ("ExternalIP", "InternalIP"):
            for address in addresses:
                if address["type"] == kind:
                    return address["address"], port["nodePort"]
    return None


@contextmanager
def find_login(kubectl: list[str], namespace: str, user: str, key: Path) -> Generator[Login]:
    """Where the login Service of `namespace` listens. One without an address is reached by `kubectl port-forward` while the block lasts.

    Raises FirstJobError.
    """
    selector = "app.kubernetes.io/component=login"
    services = _json([*kubectl, "--namespace", namespace, "get", "service", "--selector", selector, "-o", "json"])["items"]
    if not services:
        raise FirstJobError(
            f"namespace {namespace} has no login Service. Look at it: {shlex.join([*kubectl, '-n', namespace, 'get', 'all'])}"
        )
    if address := login_address(services[0], _json([*kubectl, "get", "node", "-o", "json"])):
        yield Login(*address, user, key)
        return
    forward = (*kubectl, "--namespace", namespace, "port-forward", f"service/{services[0]['metadata']['name']}")
    with _forwarded([*forward, ":22"]) as port:
        yield Login("127.0.0.1", port, user, key, (*forward, f"{port}:22"))


@contextmanager
def _forwarded(command: list[str], timeout_s: float = 30) -> Generator[int]:
    """The local port of a `kubectl port-forward` that runs while the block lasts."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield _local_port(process, timeout_s)
        finally:
            process.terminate()


def _local_port(process: subprocess.Popen[str], timeout_s: float) -> int:
    assert process.stdout
    said, end = "", monotonic() + timeout_s
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while (left := end - monotonic()) > 0 and ready.select(left):
            if not (line := process.stdout.readline()):
                break
            said += line
            if found := re.match(r"Forwarding from 127\.0\.0\.1:(\d+) ", line):
                return int(found[1])
    raise FirstJobError(f"kubectl port-forward found no way to the login pod: {said.strip() or 'it said nothing'}")


def send_settings(login: Login, files: Mapping[str, str]) -> tuple[bool, str]:
    """Puts files, by their paths from the root, into the root that the user's sessions see, as an admin does it by hand.

    Gives True and what the root has, or False and why it has not got them. The cluster may be whole all the same: the user may be no admin,
    or the root may be read-only.
    """
    if not files:
        return True, ""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path, text in sorted(files.items()):
            about = tarfile.TarInfo(path)
            about.size, about.mode = len(text.encode()), 0o644
            archive.addfile(about, io.BytesIO(text.encode()))
    trust = " && sudo -n update-ca-certificates >/dev/null" if any(path.endswith(".crt") for path in files) else ""
    command = [*login.command("BatchMode=yes", "ConnectTimeout=5"), f"sudo -n tar --extract --no-overwrite-dir --directory=/{trust}"]
    try:
        done = subprocess.run(command, input=content.getvalue(), capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return False, "the settings of this machine did not get into the root within 60 s"
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return False, f"the settings of this machine did not get into the root: {last}"
    return True, f"the root has this machine's settings: /{', /'.join(sorted(files))}"


ACCOUNT = """if scontrol show config | grep -q '^AccountingStorageEnforce .*associations'; then
  until scontrol --oneliner show assoc_mgr flags=assoc users="$(id -un)" 2>/dev/null | grep -qF " UserName=$(id -un)("; do
    if ((SECONDS > 60)); then
      echo "slurmctld knows no account of $(id -un), and refuses jobs without one. The container accounts of slurmdbd's pod says why."
      exit 1
    fi
    sleep 0.5
  done
fi
"""
"""Waits until the user has an account, where jobs need one: in a new cluster it comes seconds after slurmctld."""


def run_jobs(login: Login, timeout_s: float = 120) -> str:
    """Submits the two-node job and the GPU job, waits for both, and gives their output and accounting lines as text.

    Where the user is an admin, a package is installed in the login session meanwhile, and a job on another node runs its program; where
    not, the text says so in sudo's own words.

    Raises FirstJobError with Slurm's own words when a job is refused or fails.
    """
    script = f"""set -e
{ACCOUNT}
rm -f two-nodes.out two-gpus.out two-nodes.id two-gpus.id
default=$(sinfo -h -N -o '%P %G' | grep '^[^ ]*[*]' || true)
sbatch --wait --parsable <<'END' >two-nodes.id & nodes=$!
{TWO_NODES}END
if grep -q 'gpu:' <<<"$default"; then
sbatch --wait --parsable <<'END' >two-gpus.id & gpus=$!
{TWO_GPUS}END
fi
if refused=$(sudo -n true 2>&1); then
  said=$(bash <<'END' 2>&1
{PACKAGE}END
  ) || {{ echo "the package was not installed: $said"; exit 1; }}
fi
wait $nodes
echo "two nodes, one shared home:"; sort two-nodes.out
if [ -n "${{gpus:-}}" ]; then wait $gpus; echo "two GPUs of four:"; cat two-gpus.out
else echo "no job with GPUs was run, as the default partition has none"; fi
if [ -n "${{said:-}}" ]; then echo "a package that was installed here, in a job:"; srun --quiet slipway-hello
else echo "no package was installed, as sudo refuses $(id -un) (login.users[].admin makes admins): ${{refused#sudo: }}"; fi
jobs=$(cut -d';' -f1 two-*.id | paste -sd,)
until [ "$(sacct -nXP -j "$jobs" -o state | grep -c COMPLETED)" = "$(cat two-*.id | wc -l)" ]; do sleep 0.3; done
sacct -X -j "$jobs" -o jobid%6,jobname%10,state%10,nodelist%10,alloctres%40
"""
    command = [*login.command("BatchMode=yes", "ConnectTimeout=5"), f"bash -c {shlex.quote(script)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise FirstJobError(
            f"the first jobs did not end within {timeout_s:.0f} s. They stay in the queue; `squeue --me` says what they wait for, "
            "such as the jobs of other users"
        ) from None
    if done.returncode:
        raise FirstJobError(f"the first job did not finish (exit {done.returncode}):\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def _json(command: list[str]) -> Any:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_KUBECTL_S, check=False)
    except subprocess.TimeoutExpired:
        raise FirstJobError(f"{shlex.join(command)}: no answer within {_KUBECTL_S} s") from None
    if done.returncode:
        raise FirstJobError(done.stderr.strip())
    return json.loads(done.stdout)
