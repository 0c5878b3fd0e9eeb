"""The way out of the local cluster: packages from a namespace beside the machine, which knows the machine and no pod."""

import json
import subprocess
import urllib.request
from typing import Any

import pytest

from local import layout, outside
from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.outside import LINK, MACHINE, NETNS, PORT, SERVER, repository, run_command
from tests.support.patience import patience

FIXTURES = (repository,)

METADATA = "169.254.77.77"


def test_package_from_a_network_outside_the_machine_is_available_in_jobs(stack: DevStack, repository: str) -> None:
    """It is installed as `sudo apt install` does it; the machine's own repositories need not answer in a test."""
    apt = "sudo apt-get -o Dir::Etc::sourcelist=/tmp/out.list -o Dir::Etc::sourceparts=/dev/null"
    install = f"echo '{repository}' > /tmp/out.list && {apt} update && {apt} install -y slipway-out"
    eventually("the package", lambda: "Setting up slipway-out" in stack.ssh(install), 120, every_s=2)
    try:
        assert stack.ssh("srun slipway-out") == "hello\n"
    finally:
        stack.ssh("sudo apt-get remove -y slipway-out; rm /tmp/out.list")


@pytest.mark.parametrize(
    ("install", "python"),
    [
        pytest.param("pip install --index-url {index} --trusted-host {host} slipway-out", "python3", id="pip-into-the-home"),
        pytest.param(
            "python3 -m venv /home/alice/out && /home/alice/out/bin/pip install --index-url {index} --trusted-host {host} slipway-out",
            "/home/alice/out/bin/python",
            id="pip-into-a-venv",
        ),
        pytest.param(
            "uv venv /home/alice/out && uv pip install --python /home/alice/out --index-url {index} slipway-out",
            "/home/alice/out/bin/python",
            id="uv-into-a-venv",
        ),
    ],
)
def test_python_package_of_a_user_is_there_in_jobs(stack: DevStack, repository: str, install: str, python: str) -> None:
    assert repository
    try:
        stack.ssh(install.format(index=f"http://{SERVER}:{PORT}/simple/", host=SERVER))
        assert stack.ssh(f"srun {python} -c 'import slipway_out'") == "hello\n"
    finally:
        stack.ssh("rm -rf ~/out ~/.local/lib/python3*/site-packages/slipway_out*")


def test_pods_know_the_names_that_the_machine_knows(stack: DevStack) -> None:
    """Also where the machine's resolvers know none: then both say so."""
    corefile = json.loads(stack.kubectl("get", "configmap", "coredns", "--namespace=kube-system", "-o", "json"))
    assert outside.render_forward(outside.find_resolvers()) in corefile["data"]["Corefile"]
    for name in ("example.com", "nowhere.invalid"):
        here = subprocess.run(["getent", "ahostsv4", name], capture_output=True, check=False, timeout=60 * patience()).returncode
        assert stack.ssh(f"getent ahostsv4 {name} >/dev/null; echo $?") == f"{here}\n", name


def test_services_for_the_machine_alone_stay_out_of_reach_of_pods(stack: DevStack, repository: str) -> None:
    """Clouds give a machine's credentials to whoever asks at a link-local address."""
    assert repository
    run_command("ip", "-n", NETNS, "address", "add", f"{METADATA}/32", "dev", "eth0")
    run_command("ip", "route", "replace", METADATA, "dev", LINK)
    with urllib.request.urlopen(f"http://{METADATA}:{PORT}/", timeout=10 * patience()) as answer:
        assert answer.status == 200, "the machine itself reaches it"
    ask = "curl --silent --max-time {} --output /dev/null --write-out '%{{http_code}}' http://{}:{}/; true"
    assert stack.ssh(ask.format(round(10 * patience()), SERVER, PORT)) == "200"
    assert stack.ssh(ask.format(3, METADATA, PORT)) == "000"


def test_nobody_beside_the_machine_gets_in_to_a_pod(stack: DevStack, repository: str) -> None:
    assert repository
    [pod] = stack.get("pods", labels="app.kubernetes.io/component=slurmrestd")["items"]
    address: Any = pod["status"]["podIP"]
    run_command("ip", "-n", NETNS, "route", "replace", str(layout.WHOLE_RANGE), "via", MACHINE)
    connect = f"import socket; socket.create_connection(('{address}', 6820), timeout=5)"
    done = subprocess.run(["python3", "-c", connect], capture_output=True, text=True, check=False, timeout=60 * patience())
    assert done.returncode == 0, "the machine itself reaches it"
    beside = ["ip", "netns", "exec", NETNS, "python3", "-c", connect]
    done = subprocess.run(beside, capture_output=True, text=True, check=False, timeout=60 * patience())
    assert "TimeoutError" in done.stderr
