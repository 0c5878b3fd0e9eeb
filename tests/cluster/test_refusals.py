"""What stops `up` says which thing is wrong and what to do, and leaves nothing that a second run cannot finish."""

import json
from pathlib import Path

from tests.support.cluster.dev_stack import STATE, DevStack
from tests.support.cluster.refusals import refusal


def test_unknown_context_is_named_with_those_that_exist(stack: DevStack) -> None:
    said = refusal(stack, "--context", "nowhere")
    assert "nowhere" in said
    assert "slipway-local" in said


def test_unreachable_cluster_is_named_with_its_address(stack: DevStack, tmp_path: Path) -> None:
    dead = tmp_path / "kubeconfig"
    text = (STATE / "kubeconfig").read_text()
    server = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
    dead.write_text(text.replace(server, "https://127.0.0.1:9"))
    assert "127.0.0.1:9" in refusal(stack, "--kubeconfig", str(dead))


def test_missing_rights_are_listed_before_anything_is_touched(stack: DevStack, tmp_path: Path) -> None:
    stack.kubectl("create", "serviceaccount", "powerless", "--dry-run=client", "-o", "yaml")
    stack.kubectl("apply", "-f", "-", stdin=stack.kubectl("create", "serviceaccount", "powerless", "--dry-run=client", "-o", "yaml"))
    token = stack.kubectl("create", "token", "powerless").strip()
    config = json.loads(stack.kubectl("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    powerless = tmp_path / "kubeconfig"
    powerless.write_text(json.dumps(config))
    said = refusal(stack, "--kubeconfig", str(powerless))
    stack.kubectl("delete", "serviceaccount", "powerless")
    assert "statefulsets" in said.lower()


def test_every_mistake_of_a_config_is_shown_at_once(stack: DevStack) -> None:
    said = refusal(stack, "--config", "cluster.nodeSets[0].pool=nope", "--config", "cluster.partitions[1].nodeSets[0]=nope2")
    assert "2 mistakes" in said
    assert "cluster.nodeSets[0].pool" in said
    assert "cluster.partitions[1].nodeSets[0]" in said


def test_unknown_stack_lists_the_ones_there_are(stack: DevStack) -> None:
    done = stack.run("bash", "-c", ".venv/bin/slipway preview --stack prod", check=False)
    assert done.returncode != 0
    assert "dev" in done.stdout + done.stderr
    assert "h100" in done.stdout + done.stderr
