"""What the check of GPUs makes of what vendors' tools print."""

import json
import os
from pathlib import Path

import pytest

from programs.node_checks import gpu
from programs.node_checks.kinds import KINDS
from tests.unit.programs.node_checks.recorded import AMD_METRICS, AMD_PAGES, NVLINKS, SMI
from tests.unit.programs.node_checks.trees import write

LIMITS = {**KINDS["gpu"].limits, "vendor": "nvidia", "count": 2, "simulated": False}
BESIDE = {**LIMITS, "maxIdleMemoryMiB": 0}


def smi(**changes: str) -> list[gpu.State]:
    """Two H100 under load, of which the first one has these fields changed."""
    return gpu.read_states("\n".join(", ".join(each) for each in ({**SMI, **changes}.values(), {**SMI, "index": "1"}.values())))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param({"ecc": "3"}, "GPU 0 has 3 uncorrectable memory errors", id="ecc"),
        pytest.param({"remap_failed": "Yes"}, "GPU 0 has memory to be retired", id="row-remapping-failed"),
        pytest.param({"remap_pending": "Yes"}, "GPU 0 has memory to be retired", id="row-remapping-pending"),
        pytest.param({"temperature": "91"}, "GPU 0 is hotter than 90 C", id="hot"),
        pytest.param({"thermal": "Active"}, "GPU 0 is held back by heat", id="thermal-slowdown"),
        pytest.param({"brake": "Active"}, "GPU 0 is held back by the power brake", id="power-brake"),
        pytest.param({"width": "8"}, "GPU 0 has 8 of 16 PCIe lanes", id="narrow"),
        pytest.param({"generation": "3"}, "GPU 0 has PCIe 3, 5 possible", id="slow"),
        pytest.param({"fabric": "Not Started"}, "GPU 0 is not in the NVLink fabric: the fabric manager has not begun with it", id="fabric"),
        pytest.param({"fabric_status": "Insufficient Resources"}, "GPU 0 is not in the NVLink fabric: Insufficient Resources", id="status"),
        pytest.param({"performance": "[GPU requires reset]"}, "GPU 0 says [GPU requires reset]", id="requires-reset"),
    ],
)
def test_gpu_with_a_fault(changes: dict[str, str], found: str) -> None:
    assert gpu.judge(2, smi(**changes), BESIDE) == ("failed", found)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"generation": "1", "width": "8", "utilization": "0", "performance": "P8"}, id="idle-and-its-link-saves-power"),
        pytest.param({"fabric": "In Progress", "fabric_status": "N/A"}, id="fabric-being-built"),
        pytest.param({"fabric": "N/A", "fabric_status": "N/A"}, id="no-nvswitch"),
        pytest.param({"temperature": "N/A", "thermal": "[N/A]", "width": "[N/A]"}, id="tells-nothing"),
    ],
)
def test_gpu_in_order(changes: dict[str, str]) -> None:
    assert gpu.judge(2, smi(**changes), BESIDE) == ("passed", "2 GPUs")


def test_users_job_with_all_of_a_gpus_memory_is_no_fault() -> None:
    busy = smi(memory="81559", utilization="100")
    assert gpu.judge(2, busy, BESIDE) == ("passed", "2 GPUs")
    idle = {**LIMITS, "count": 1}
    assert gpu.judge(1, busy[:1], idle) == ("failed", "GPU 0 has more than 1024 MiB in use on an idle node")


def test_nvlinks_that_are_inactive_are_missed_where_a_number_is_wanted() -> None:
    states = gpu.with_nvlinks(smi(), NVLINKS)
    assert [state.nvlinks for state in states] == [3, 2]
    assert gpu.judge(2, states, {**BESIDE, "minNvlinks": 3}) == ("failed", "GPU 1 has 2 active NVLinks, 3 wanted")
    assert gpu.judge(2, states, BESIDE)[0] == "passed"


def stand_in(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor's tool that prints what was recorded."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setattr(gpu, "_FOLDERS", (str(folder),))


def test_driver_that_does_not_know_a_field_is_asked_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = 'case "$1" in *{}*) echo \'Field "{}" is not a valid field to query.\'; exit 2;; esac'
    unknown = ("clocks_event_reasons.hw_thermal_slowdown", "clocks_event_reasons.hw_power_brake_slowdown", "fabric.state", "fabric.status")
    answer = ", ".join(list({**SMI, "thermal": "Active"}.values())[:-2])
    stand_in(tmp_path, "nvidia-smi", "\n".join([*(refuse.format(each, each) for each in unknown), f"echo '{answer}'"]), monkeypatch)
    [state] = gpu.ask("nvidia", asks_nvlinks=False) or []
    assert (state.throttled, state.fabric, state.memory_used_mib) == ("heat", "", 70000)


def test_amd_gpus_are_read_from_amd_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metric").write_text(json.dumps(AMD_METRICS))
    (tmp_path / "bad-pages").write_text(json.dumps(AMD_PAGES))
    stand_in(tmp_path, "amd-smi", f'exec cat "{tmp_path}/$1"', monkeypatch)
    states = gpu.ask("amd", asks_nvlinks=False)
    settings = {**BESIDE, "vendor": "amd", "count": 3}
    assert gpu.judge(3, states, settings) == (
        "failed",
        "GPU 1 has 2 uncorrectable memory errors; GPU 1 has memory to be retired; GPU 2 is hotter than 90 C; "
        "GPU 2 is held back by socket_thermal",
    )
    assert states is not None
    assert gpu.judge(1, states[:1], {**settings, "count": 1}) == ("passed", "1 GPUs")


def test_driver_is_told_beside_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(tmp_path, "nvidia-smi", f"echo '{', '.join(SMI.values())}'", monkeypatch)
    monkeypatch.setattr("sys.argv", ["-", json.dumps({**BESIDE, "count": 1, "otherDrivers": 2})])
    gpu.main()
    assert json.loads(capsys.readouterr().out)["driver"] == {"version": "550.90.07", "drains": 2}


def test_driver_of_amd_is_that_of_sysfs_or_the_kernels_own(tmp_path: Path) -> None:
    assert gpu.amd_driver(tmp_path) == os.uname().release
    write(tmp_path, {"version": "6.8.5"})
    assert gpu.amd_driver(tmp_path) == "6.8.5"


@pytest.mark.parametrize(
    ("script", "result", "found"),
    [
        pytest.param("echo no driver >&2; exit 15", "failed", "nvidia-smi ended with 15: no driver", id="driver"),
        pytest.param("echo what >&2; exit 6", "unknown", "nvidia-smi ended with 6: what", id="other-end"),
        pytest.param("echo what", "unknown", "nvidia-smi said ['what']", id="other-words"),
    ],
)
def test_tool_that_gives_no_state(
    script: str, result: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, "nvidia-smi", script, monkeypatch)
    monkeypatch.setattr("sys.argv", ["-", json.dumps(LIMITS)])
    gpu.main()
    assert json.loads(capsys.readouterr().out) == {"result": result, "found": found}
