"""Slurm's files checked as previews do it: a real podman, the real image, and slurmctld without a network. Needs root and the built image."""

# ruff: noqa: E501 - a table reads best with a row on a line

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from cli import config_check
from cli import main as cli
from cli.config_check import Subject, archive, command
from configs.images import reference
from configs.render.slurm import render, render_slurmdbd
from images.build import build
from tests.support.configs.stacks import GONE, cluster
from tests.support.patience import seconds
from tests.support.slurm.image_pods import PROJECT

CONTAINERS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
"""Limits below podman's own, which root cannot set where CAP_SYS_RESOURCE is missing."""
GOOD: dict[str, dict[str, Any]] = {
    "dev": {},
    "without-accounting": {"accounting": {"enabled": False}},
    "node-without-an-address": {"slurm": {"raw": ["NodeName=old-[1-2] CPUs=2 State=DOWN", "PartitionName=old Nodes=old-[1-2]"]}},
    "accounts-of-an-administrator": {"accounting.accounts": GONE, "partitions[0].settings": {"AllowAccounts": "theirs", "DenyQos": "slow"}},
    "quiet": {"slurm": {"settings": {"SlurmctldDebug": "quiet", "LogTimeFormat": "thread_id"}}},
}
TREE = "TopologyPlugin=topology/tree\n"
NETWORK = "- topology: net\n  tree:\n    switches:\n    - {switch: s0, nodes: 'cpu-[0-1],nosuch'}\n"
BAD = [
    pytest.param({"slurm.conf": "PriorityWeightTRES=CPU=1,license/matlab=2\n"}, "slurm.conf", "'license:matlab' is not a configured TRES type", id="raw-line"),
    pytest.param({"slurm.conf": "MinJobAge=soon\n"}, "slurm.conf", "MinJobAge value (soon) is not a valid number", id="value"),
    pytest.param({"slurm.conf": "NoSuchKey=1\n"}, "slurm.conf", "unrecognized key: NoSuchKey", id="key"),
    pytest.param({"slurm.conf": "PartitionName=x Nodes=nosuch\n"}, "slurm.conf", 'lookup failure for node "nosuch"', id="unknown-node-in-a-partition"),
    pytest.param({"gres.conf": "NodeName=gpu-[0-1] Name=gpu Type=a100 File=/dev/nvidia[4-7]\n"}, "gres.conf", "GRES gpu:a100 has 4 more configured than expected in slurm.conf", id="gres-of-another-type"),
    pytest.param({"gres.conf": "NodeName=gpu-0 Name=gpu Type=h100 File=/dev/nvidia4\n"}, "gres.conf", "GRES gpu:h100 has 1 more configured than expected", id="gres-too-many"),
    pytest.param({"gres.conf": "Name=gpu Fils=/dev/nvidia0\n"}, "gres.conf", "gres.conf line", id="gres-key"),
    pytest.param({"gres.conf": "Name=shard Count=4\n"}, "gres.conf", "invalid name: shard", id="gres-that-slurm.conf-does-not-have"),
    pytest.param({"slurm.conf": TREE, "topology.conf": "SwitchName=s0 Nodes=cpu-[0-1],nosuch\n"}, "topology.conf", "Invalid hostnames in switch configuration: nosuch", id="topology"),
    pytest.param({"topology.yaml": NETWORK}, "topology.yaml", "Invalid hostnames in switch configuration: nosuch", id="topologies"),
    pytest.param({"slurm.conf": TREE}, "slurm.conf", "topology.conf: No such file or directory", id="topology-missing"),
    pytest.param({"cgroup.conf": "ConstrainCoers=yes\n"}, "cgroup.conf", "unrecognized key: ConstrainCoers", id="cgroup"),
    pytest.param({"job_submit.lua": "this is no Lua\n"}, "job_submit.lua", "job_submit.lua:", id="script"),
]  # fmt: skip
"""What is put at the end of the dev stack's files, without its topologies, and what slurmctld says of which file."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image, in a store of podman's own."""
    folder = tmp_path_factory.mktemp("podman")
    (folder / "containers.conf").write_text(CONTAINERS)
    store = f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
    (folder / "storage.conf").write_text(store)
    (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        patch.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
        for limit, quiet_s in (("_PROBE_S", 5), ("_RUN_S", 120)):
            patch.setattr(config_check, limit, seconds(quiet_s))
        patch.setattr(config_check, "_SCRIPT", by_pace(vars(config_check)["_SCRIPT"]))
        podman("load", "--signature-policy", str(folder / "policy.json"), "--input", str(build("slurm", Console(stderr=True))))
        try:
            yield reference("slurm", PROJECT)
        finally:
            assert podman("ps", "--all", "--quiet") == ""
            podman("rmi", "--all", "--force")
            subprocess.run(["umount", str(folder / "root/overlay")], capture_output=True, check=False)


def by_pace(script: str) -> str:
    """A container's script whose program has the time that this machine's pace asks for."""
    limits = rf"sed -Ei 's/^_(READ|ASK|ALL|START)_S = /&{seconds(1)} * /' programs/config_check/*.py"
    return script.replace("exec ", f"{limits} && exec ")


def podman(*arguments: str, given: bytes | None = None) -> str:
    done = subprocess.run(["podman", *arguments], input=given, capture_output=True, timeout=seconds(300), check=False)
    assert done.returncode == 0, done
    return done.stdout.decode()


def files_of(edits: dict[str, Any]) -> dict[str, str]:
    loaded = cluster("dev", edits)
    return {**render(loaded), **({"slurmdbd.conf": render_slurmdbd(loaded)} if loaded.accounting.enabled else {})}


@pytest.fixture(scope="module")
def readings(image: str) -> dict[str, dict[str, Any]]:
    """What the program says of every set of files, by its name. A single container reads all of them."""
    sets = {name: files_of(edits) for name, edits in GOOD.items()}
    base = files_of({"topologies": []})
    for case in BAD:
        added: dict[str, str] = case.values[0]  # type: ignore[assignment]
        sets[str(case.id)] = {**base, **{name: base.get(name, "") + text for name, text in added.items()}}
    texts = {f"/sets/{name}/{file}": (text, 0o444) for name, files in sets.items() for file, text in files.items()}
    script = (PROJECT / "programs/start/prolog-slurmctld.sh").read_text()
    subject = Subject(image, "dev-slurmctld-0", (), {**texts, "/opt/slipway/scripts/prolog-slurmctld.sh": (script, 0o555)})
    own = by_pace("tar -x -C / && cd /opt/check && exec python3 -EsSB -m programs.config_check.run /sets/*")
    _, *arguments = command("podman", subject, "slipway-check-sets")
    answer = json.loads(podman(*arguments[: arguments.index("-c")], "-c", own, given=archive(subject)))
    return {each["folder"].removeprefix("/sets/"): each for each in answer["sets"]}


@pytest.mark.parametrize("name", GOOD)
def test_good_files_give_no_complaint(readings: dict[str, dict[str, Any]], name: str) -> None:
    reading = readings[name]
    assert (reading["mistakes"], reading["notes"]) == ([], [])
    raw = name == "node-without-an-address"
    assert (reading["nodes"], reading["partitions"]) == (6 + 2 * raw, 4)  # that of the checks, or a raw one, which leaves no room for it


@pytest.mark.parametrize(("added", "file", "words"), BAD)
def test_bad_files_give_an_error_that_names_the_file(
    readings: dict[str, dict[str, Any]], added: dict[str, str], file: str, words: str, request: pytest.FixtureRequest
) -> None:
    found = readings[request.node.callspec.id]["mistakes"]
    assert any(each["file"] == file and words in each["text"] for each in found), found
    assert {each["file"] for each in found} <= {file, "slurm.conf"}


def preview(capsys: pytest.CaptureFixture[str], stack: str, *options: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["preview", "--stack", stack, "-C", str(PROJECT), "--offline", *options])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def test_preview_has_slurmctld_of_the_image_read_the_files(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = preview(capsys, "h100", "-c", f"cluster.images.slurm={image}")
    last = said.splitlines()[-1]
    assert code == 0, said
    assert last.startswith("Slurm's files: read by slurmctld ")
    assert last.endswith(f" of {image}: 72 nodes, 4 partitions, no complaint")
    assert in_document(last)


def test_preview_fails_over_a_raw_line_that_slurmctld_refuses(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An image that the stack file names may lack a plugin, which no rule can know."""
    raw = 'cluster.slurm.raw=["SwitchType=switch/hpe_slingshot"]'
    own = f"cluster.images.slurm={image}"
    code, said = preview(capsys, "dev", "-c", own, "-c", "cluster.images.root=registry.example/root:1", "-c", raw, "--check-with", "podman")
    said = said.rpartition("✗ ")[2]
    assert (code, said.splitlines()[1:]) == (1, ["  slurm.conf: Can't find plugin for switch/hpe_slingshot"])
    assert said.startswith("Slurm's files: 1 mistake, says slurmctld ")
    assert in_document(said)


def in_document(said: str) -> bool:
    """True when docs/operate/changes.md shows these lines, whatever the tag of the image."""
    shown = re.sub(r"slurm:[0-9a-f]{12}", "slurm:0123456789ab", said)
    return "".join(f"    {line}\n" for line in shown.splitlines()) in (PROJECT / "docs/operate/changes.md").read_text()
