"""The web page of the live dev stack, through the ssh tunnel of a login: what docs/operate/page.md tells people to do."""

import json
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.support.cluster.dev_stack import KEY, NODE_PORT, DevStack, eventually
from tests.support.patience import patience


@contextmanager
def tunnel(stack: DevStack, user: str) -> Generator[str]:
    """The page's address at this end of `ssh -N -L`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ssh = subprocess.Popen(
        [
            *("ssh", "-N", "-L", f"{port}:dev-page:80", "-i", str(KEY), "-p", NODE_PORT, "-o", "BatchMode=yes"),
            *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", f"{user}@{stack.address}"),
        ],
        stdin=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        ssh.terminate()
        ssh.wait(20 * patience())


def told(url: str, path: str = "/data.json") -> dict[str, Any]:
    try:
        return httpx2.get(f"{url}{path}", trust_env=False, timeout=10 * patience()).raise_for_status().json()
    except httpx2.HTTPError as error:
        raise LookupError(str(error)) from error


def names_of(rows: list[dict[str, Any]]) -> set[str]:
    return {row["name"] for row in rows}


def test_page_shows_all_nodes_and_a_drained_ones_cause_through_a_login(stack: DevStack) -> None:
    with tunnel(stack, "carol") as url:
        names = eventually("the page has nodes", lambda: names_of(told(url)["nodes"]))
        assert names == {f"{name}-{at}" for name in ("cpu", "gpu", "burst") for at in (0, 1)}
        job = stack.submit("#!/bin/bash\nsleep 60\n", "--job-name=seen-on-the-page", "--hold")
        stack.slurm("scontrol update NodeName=gpu-1 State=DRAIN Reason='its fan is loud'")
        try:

            def drained() -> dict[str, Any] | None:
                [node] = [each for each in told(url)["nodes"] if each["name"] == "gpu-1"]
                return node if node["state"] == "drained" and node.get("causes") else None

            node = eventually("its cause is on the page", drained, 90)
            eventually("alice's job is on the page", lambda: "seen-on-the-page" in names_of(told(url, "/jobs.json?user=alice")["jobs"]), 90)
        finally:
            stack.slurm("scontrol update NodeName=gpu-1 State=UNDRAIN")
            stack.slurm(f"scancel {job}", check=False)
        assert node is not None
        assert [(cause["name"], cause["evidence"]) for cause in node["causes"]] == [("administrator", "its fan is loud")]
        whole = {"nodes": "", "jobs": "", "causes": ""}
        eventually("no reading fails", lambda: {name: each["fault"] for name, each in told(url)["readings"].items()} == whole, 30)
        assert json.dumps(told(url)["history"]) != "[]"
