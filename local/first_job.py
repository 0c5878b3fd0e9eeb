"""The end of `make up`: jobs of a plain user over ssh, from outside the pods, and then how to log in.

Data comes from kubectl (where the login Service listens) and ssh; nothing is changed but the user's own home. Knows nothing of how
the stack was made: it works against any Slipway cluster whose login Service it can reach.
"""

import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    def command(self, *more: str) -> list[str]:
        """The ssh command line; a local cluster is made anew again and again, so its host key is not remembered."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", *more)
        return [
            *("ssh", "-i", str(self.key), "-p", str(self.port)),
            *(word for option in options for word in ("-o", option)),
            f"{self.user}@{self.host}",
        ]


def login_address(services: Any, nodes: Any) -> tuple[str, int]:
    """Host and port of the login Service, from `kubectl get service,node -o json`: a load balancer's address, else a node port.

    Raises FirstJobError when the Service cannot be reached from outside the pods.
    """
    for service in services["items"]:
        port = service["spec"]["ports"][0]
        for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress", []):
            return ingress.get("ip") or ingress["hostname"], port["port"]
        if "nodePort" in port:
            addresses = [a for node in nodes["items"] for a in node["status"]["addresses"]]
            for kind in ("ExternalIP", "InternalIP"):
                for address in addresses:
                    if address["type"] == kind:
                        return address["address"], port["nodePort"]
    raise FirstJobError(
        "no login Service with a load balancer's address or a node port. "
        "Set cluster.login.service.type to NodePort or LoadBalancer, or forward a port with kubectl port-forward."
    )


def find_login(kubectl: list[str], namespace: str, user: str, key: Path) -> Login:
    """Asks the cluster where the login Service of `namespace` listens."""
    selector = "app.kubernetes.io/component=login"
    services = _json([*kubectl, "--namespace", namespace, "get", "service", "--selector", selector, "-o", "json"])
    nodes = _json([*kubectl, "get", "node", "-o", "json"])
    host, port = login_address(services, nodes)
    return Login(host, port, user, key)


def run_jobs(login: Login, timeout_s: float = 120) -> str:
    """Submits the two-node job and the GPU job, waits for both, and gives their output and accounting lines as text.

    Where the user is an admin, a package is installed in the login session meanwhile, and a job on another node runs its program; where
    not, the text says so in sudo's own words.

    Raises FirstJobError with Slurm's own words when a job is refused or fails.
    """
    script = f"""set -e
rm -f two-nodes.out two-gpus.out
sbatch --wait --parsable <<'END' >two-nodes.id & nodes=$!
{TWO_NODES}END
sbatch --wait --parsable <<'END' >two-gpus.id & gpus=$!
{TWO_GPUS}END
if refused=$(sudo -n true 2>&1); then
  said=$(bash <<'END' 2>&1
{PACKAGE}END
  ) || {{ echo "the package was not installed: $said"; exit 1; }}
fi
wait $nodes; wait $gpus
echo "two nodes, one shared home:"; sort two-nodes.out
echo "two GPUs of four:"; cat two-gpus.out
if [ -n "${{said:-}}" ]; then echo "a package that was installed here, in a job:"; srun --quiet slipway-hello
else echo "no package was installed, as sudo refuses $(id -un) (login.users[].admin makes admins): ${{refused#sudo: }}"; fi
jobs=$(cut -d';' -f1 two-nodes.id two-gpus.id | paste -sd,)
until [ "$(sacct -nXP -j "$jobs" -o state | grep -c COMPLETED)" = 2 ]; do sleep 0.3; done
sacct -X -j "$jobs" -o jobid%6,jobname%10,state%10,nodelist%10,alloctres%40
"""
    done = subprocess.run(
        [*login.command("BatchMode=yes", "ConnectTimeout=5"), f"bash -c {shlex.quote(script)}"],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode:
        raise FirstJobError(f"the first job did not finish (exit {done.returncode}):\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def _json(command: list[str]) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise FirstJobError(done.stderr.strip())
    return json.loads(done.stdout)
