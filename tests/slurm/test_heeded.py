"""What slurmctld of the image makes of settings that configs accepts, and of some that it refuses: the facts behind `configs/rules`.

Of the sound ones it has nothing to complain; the others it takes for something else, or it does not start. Needs root and the built image.
"""

# ruff: noqa: E501 - a table reads best with a row on a line

import re
from pathlib import Path
from typing import Any, cast

import pytest

from configs.render.slurm import render, render_slurmdbd
from configs.rules.files import ABSENT_PLUGINS
from tests.support.configs.sound import SOUND
from tests.support.configs.stacks import cluster
from tests.support.slurm.render_lab import ELSEWHERE, Reading, read_sets

OF_THE_DATABASE = "accounts-that-an-administrator-keeps"
"""Its accounts and QOS are in no database here."""
PEOPLE = re.compile(r"error: _get_group_members: Could not find configured group alice")
"""Users of the stack are in files that no daemon has here."""
CASES = [(str(case.id), *cast(tuple[str, dict[str, Any]], case.values)) for case in SOUND]
SOUND_ONES = {
    name: edits
    for name, example, edits in CASES
    if example == "dev" and name != OF_THE_DATABASE and any(key.startswith(("slurm", "partitions", "nodeSets")) for key in edits)
}
FLAT: dict[str, Any] = {"topologies": []}
"""Slurm heeds TopologyPlugin where there is no topology.yaml."""
SKIPPED = [
    pytest.param("NodeName=cpu-", "CoreSpecCount=2", "CoreSpecCount=2 is invalid, reset to 1", id="all-cores-kept"),
    pytest.param("NodeName=gpu-", "CpuSpecList=5", "Ignoring CpuSpecList", id="kept-cpu-that-is-not-there"),
    pytest.param("NodeName=burst-", "MemSpecLimit=4000", "MemSpecLimit=4000 is invalid, reset to 0", id="all-memory-kept"),
    pytest.param("PartitionName=burst ", "AllowAccounts=nobody DenyAccounts=other", "DenyAccounts will be ignored", id="accounts-allowed-and-denied"),
    pytest.param("PartitionName=gpu ", "MaxMemPerCPU=100 MaxMemPerNode=200", "MaxMemPerCPU ignored", id="two-memory-limits"),
    pytest.param("PartitionName=main ", "AllowGroups=wheels OverSubscribe=FORCE:0 CpuBind=cors", "Could not find configured group wheels", id="group-that-is-not-there"),
    pytest.param("PartitionName=main ", "AllowGroups=wheels OverSubscribe=FORCE:0 CpuBind=cors", "Ignoring bad OverSubscribe value", id="shared-by-none"),
    pytest.param("PartitionName=main ", "AllowGroups=wheels OverSubscribe=FORCE:0 CpuBind=cors", "CpuBind='cors' is invalid, ignored", id="unknown-binding"),
    pytest.param("", "SchedulerParameters=bf_window=0,bf_contine", "Invalid SchedulerParameters bf_window: 0", id="no-backfill-window"),
    pytest.param("", "DownNodes=old-1 State=DOWN", 'DownNode "old-1" does not exist', id="down-node-that-is-not-there"),
    pytest.param("", "HealthCheckNodeState=IDL", "Invalid HealthCheckNodeState value IDL ignored", id="unknown-state-to-check"),
    pytest.param("", "RequeueExit=1;18", "Invalid range", id="exit-codes-apart-by-semicolons"),
    pytest.param("", "PrivateData=jobs,usr", "", id="unknown-private-data"),
    pytest.param("", "SrunPortRange=63000-60001", "", id="ports-backwards"),
]  # fmt: skip
FATAL = [
    pytest.param("PriorityWeightTRES=CPU=1,license/matlab=2", "'license:matlab' is not a configured TRES type", id="weight-of-what-is-not-tracked"),
    pytest.param("PartitionName=old TRESBillingWeights=CPUs=1.0", "'CPUs' is not a configured TRES type", id="weight-of-no-tres"),
    pytest.param("PartitionName=old QOS=nosuch", "invalid qos", id="unknown-qos-of-a-partition"),
    pytest.param("PartitionName=old AllowQos=nosuch", "invalid AllowQOS", id="unknown-allowed-qos"),
    pytest.param("PartitionName=old Nodes=old-9", "Invalid node names in partition old", id="partition-of-a-node-that-is-not-there"),
    pytest.param("PartitionName=old OverSubscribe=MAYBE", 'Bad value "MAYBE" for OverSubscribe', id="unknown-sharing"),
    pytest.param("PartitionName=old Exclusive=YES", 'Bad value "YES" for Exclusive', id="exclusive-for-whom"),
    pytest.param("Licenses=matlab:four", "Invalid configured licenses", id="licenses-in-words"),
    pytest.param("DebugFlags=backfil", "DebugFlags invalid", id="unknown-debug-flag"),
    pytest.param("TopologyPlugin=topology/trees", "Failed to initialize topology plugin", id="unknown-topology"),
    pytest.param("BurstBufferType=burst_buffer/lua", "burst_buffer.lua", id="burst-buffer-without-its-script"),
    pytest.param("JobCompType=jobcomp/lua", "jobcomp.lua", id="completion-without-its-script"),
    *(pytest.param(f"{key}={name}", name, id=name.replace("/", "-")) for name, key in ABSENT_PLUGINS.items()),
    pytest.param("PreemptMode=OFF", "PreemptType and PreemptMode values incompatible", id="preemption-that-does-nothing"),
]  # fmt: skip


def files_of(edits: dict[str, Any]) -> dict[str, str]:
    """The files of an edited example, with the database's."""
    loaded = cluster("dev", edits)
    return {**render(loaded), "slurmdbd.conf": render_slurmdbd(loaded)}


def skipped() -> str:
    """slurm.conf with all that slurmctld passes over."""
    lines = files_of({})["slurm.conf"].splitlines()
    added = {str(case.values[0]): str(case.values[1]) for case in SKIPPED if case.values[0]}
    lines = [" ".join([line, *(more for head, more in added.items() if line.startswith(head))]) for line in lines]
    return "\n".join([*lines, *(str(case.values[1]) for case in SKIPPED if not case.values[0]), ""])


@pytest.fixture(scope="module")
def readings(image_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reading]:
    """What slurmctld made of each set."""
    base = files_of({})
    sets = {name: files_of(edits) for name, edits in SOUND_ONES.items()}
    sets["skipped"] = {**base, "slurm.conf": skipped()}
    flat = files_of(FLAT)
    sets |= {f"fatal-{case.id}": {**flat, "slurm.conf": f"{flat['slurm.conf']}{case.values[0]}\n"} for case in FATAL}
    return read_sets(image_root, tmp_path_factory.mktemp("heeded"), "dev", sets)


@pytest.mark.parametrize("name", SOUND_ONES)
def test_slurmctld_complains_of_nothing_that_is_accepted(readings: dict[str, Reading], name: str) -> None:
    assert [line for line in readings[name].complaints if not ELSEWHERE.match(line) and not PEOPLE.match(line)] == []
    assert readings[name].text("exit").strip() == "0", readings[name].text("log")[-3000:]


@pytest.mark.parametrize(("head", "said", "complaint"), SKIPPED)
def test_slurmctld_starts_and_heeds_something_else(readings: dict[str, Reading], head: str, said: str, complaint: str) -> None:
    """Where it has no complaint, it shows nothing of the setting."""
    reading = readings["skipped"]
    assert reading.text("exit").strip() == "0", reading.text("log")[-3000:]
    if complaint:
        assert any(complaint in line for line in reading.complaints), (head, said)
    assert reading.config["PrivateData"] == "jobs"
    assert reading.config["SrunPortRange"] == "0-0"


@pytest.mark.parametrize("case", [pytest.param(each.values, id=str(each.id)) for each in FATAL])
def test_slurmctld_does_not_start(readings: dict[str, Reading], case: tuple[str, str], request: pytest.FixtureRequest) -> None:
    reading = readings[f"fatal-{request.node.callspec.id}"]
    assert reading.text("exit").strip() == "1"
    assert any(case[1] in line for line in reading.complaints), reading.complaints
