"""The program as a process: what it says before it knows EC2, and how it ends."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path

import httpx2
import pytest

from controllers.ec2.settings import read_settings
from controllers.runtime.environment import SettingsError
from controllers.runtime.structs import KUBE_NODES
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.patience import patience

pytestmark = pytest.mark.anyio
WHOLE = {"SLIPWAY_CLUSTER": "dev", "SLIPWAY_NAMESPACE": "slurm", "AWS_REGION": "eu-west-1", "SLIPWAY_TOKEN": "/token"}


def test_every_fault_of_the_environment_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"SLIPWAY_EVERY_S": "often", "SLIPWAY_STEPS": "RebootMachine,Explode"})
    assert [line.split()[0] for line in str(caught.value).splitlines()] == [*WHOLE, "SLIPWAY_STEPS", "SLIPWAY_EVERY_S"]
    assert read_settings({**WHOLE, "SLIPWAY_STEPS": "ReplaceMachine"}).steps == ("ReplaceMachine",)


def free_ports(number: int) -> list[str]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [str(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports


async def answer(method: str, url: str, until: str) -> str:
    """What the process says, once it has these words in it."""
    end = asyncio.get_running_loop().time() + 20 * patience()
    said = ""
    async with httpx2.AsyncClient(trust_env=False) as client:
        while until not in said:
            assert asyncio.get_running_loop().time() < end, said
            try:
                said = (await client.request(method, url, content=b"{}" if method == "POST" else None)).text
            except httpx2.HTTPError as error:
                said = repr(error)
            await asyncio.sleep(0.05)
    return said


async def test_process_says_what_it_waits_for_and_ends_when_asked_to(tmp_path: Path) -> None:
    ports = free_ports(3)
    (tmp_path / "token").write_text("secret")
    async with FakeKubernetes() as server:
        provider_id = "aws:///eu-west-1a/i-0abc"
        server.put(KUBE_NODES, {"metadata": {"name": "m0"}, "spec": {"providerID": provider_id}, "status": {"conditions": []}})
        parts = {"clusters": {"cluster": {"server": server.url}}, "users": {"user": {"token": "t"}}}
        parts["contexts"] = {"context": {"cluster": "a", "user": "a"}}
        config = {"current-context": "a", **{name: [{"name": "a", **part}] for name, part in parts.items()}}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        environment = {
            **os.environ,
            **WHOLE,
            "KUBECONFIG": str(tmp_path / "kubeconfig"),
            "SLIPWAY_TOKEN": str(tmp_path / "token"),
            "SLIPWAY_PORT": ports[0],
            "SLIPWAY_REQUESTS_PORT": ports[1],
            "SLIPWAY_PROBE_PORT": ports[2],
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "a",
        }
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "controllers.ec2", env=environment)
        try:
            await answer("GET", f"http://127.0.0.1:{ports[2]}/readyz", "EC2: DescribeInstanceStatus: Could not connect")
            await answer("GET", f"http://127.0.0.1:{ports[2]}/healthz", "ok")
            await answer("POST", f"http://127.0.0.1:{ports[1]}/steps", "the token is missing")
            await answer("GET", f"http://127.0.0.1:{ports[0]}/metrics", "slipway_ec2_failures_total")
        finally:
            process.terminate()
        assert await process.wait() == 0
        assert server.writes() == []


async def test_wrong_environment_ends_it_with_words() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "AWS_REGION"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "controllers.ec2"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert (process.returncode, b"AWS_REGION is not set" in said, b"Traceback" in said) == (2, True, False)
