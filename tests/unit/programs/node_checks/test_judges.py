"""What the checks make of what they find on a node, and that anything but a whole answer counts as unknown."""

from pathlib import Path
from typing import Any

import pytest

from programs.node_checks import clock, disk, gpu, memory
from programs.node_checks.plan import FAILED, PASSED, SKIPPED, UNKNOWN, Outcome
from programs.node_checks.slurm import read_outcome

ROOMY = disk.Filesystem("/", 9000, 20000, False)


@pytest.mark.parametrize(
    ("filesystems", "limits", "answer"),
    [
        pytest.param([ROOMY], (1024, 0), ("passed", "1 paths have room"), id="room"),
        pytest.param([ROOMY], (9000, 45), ("passed", "1 paths have room"), id="just-enough"),
        pytest.param([ROOMY], (9001, 0), ("failed", "/ has 9000 MiB free, 9001 wanted"), id="too-little"),
        pytest.param([ROOMY], (0, 46), ("failed", "/ has 9000 MiB free, 9200 wanted"), id="too-small-a-part"),
        pytest.param([disk.Filesystem("/tmp", 9000, 9000, True)], (0, 0), ("failed", "/tmp is read-only"), id="read-only"),
        pytest.param(
            [disk.Filesystem("/", 1, 2, True), disk.Filesystem("/tmp", 1, 2, False)],
            (5, 0),
            ("failed", "/ is read-only; /tmp has 1 MiB free, 5 wanted"),
            id="every-fault-is-named",
        ),
    ],
)
def test_disk(filesystems: list[disk.Filesystem], limits: tuple[int, int], answer: tuple[str, str]) -> None:
    assert disk.judge(filesystems, {"minFreeMiB": limits[0], "minFreePercent": limits[1]}) == answer


def test_disk_is_read_from_the_system(tmp_path: Path) -> None:
    seen = disk.look(str(tmp_path))
    assert 0 < seen.free_mib <= seen.total_mib
    assert not seen.is_read_only
    with pytest.raises(FileNotFoundError):
        disk.look(str(tmp_path / "none"))


LIMITS = {"configuredMiB": 1000, "minAvailablePercent": 50, "maxUncorrectableErrors": 0, "maxCorrectableErrors": 10}


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        pytest.param(memory.Memory(1000, 500, 0, 10), ("passed", "500 of 1000 MiB available, 10 correctable errors"), id="fine"),
        pytest.param(
            memory.Memory(1000, 500, None, None), ("passed", "500 of 1000 MiB available, no errors counted here"), id="not-counted"
        ),
        pytest.param(memory.Memory(999, 900, 0, 0), ("failed", "999 MiB of memory, 1000 configured"), id="a-module-is-gone"),
        pytest.param(
            memory.Memory(1000, 499, 0, 0), ("failed", "499 MiB of memory available on an idle node, 500 wanted"), id="an-idle-node-is-full"
        ),
        pytest.param(memory.Memory(1000, 900, 1, 0), ("failed", "1 uncorrectable memory errors"), id="uncorrectable"),
        pytest.param(memory.Memory(1000, 900, 0, 11), ("failed", "11 correctable memory errors, 10 allowed"), id="too-many-correctable"),
    ],
)
def test_memory(seen: memory.Memory, answer: tuple[str, str]) -> None:
    assert memory.judge(seen, LIMITS) == answer


def test_memory_is_read_from_the_kernel(tmp_path: Path) -> None:
    meminfo = "MemTotal:        2048 kB\nMemFree:          512 kB\nMemAvailable:    1024 kB\nHugePages_Total:       0\n"
    assert memory.read_memory(meminfo, tmp_path) == memory.Memory(2, 1, None, None)
    for controller, errors in (("mc0", 2), ("mc1", 3)):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "ce_count").write_text(f"{errors}\n")
        (tmp_path / controller / "ue_count").write_text("0\n")
    assert memory.read_memory(meminfo, tmp_path) == memory.Memory(2, 1, 0, 5)
    with pytest.raises(KeyError):
        memory.read_memory("MemTotal: 1 kB\n", tmp_path)


@pytest.mark.parametrize(
    ("before", "controller", "after", "result"),
    [
        pytest.param(100.0, 100, 100.1, "passed", id="equal"),
        pytest.param(102.9, 100, 102.95, "passed", id="ahead-by-1.9-to-2.95-may-be-within-2"),
        pytest.param(103.1, 100, 103.2, "failed", id="ahead-by-more-than-2"),
        pytest.param(97.9, 100, 98.0, "passed", id="behind-by-2-to-3.1-may-be-within-2"),
        pytest.param(97.8, 100, 97.9, "failed", id="behind-by-more-than-2"),
        pytest.param(100.0, 110, 125.0, "passed", id="a-slow-answer-proves-nothing"),
    ],
)
def test_clock(before: float, controller: int, after: float, result: str) -> None:
    assert clock.judge(before, controller, after, {"maxOffsetS": 2})[0] == result


def test_clock_of_the_controller_is_read_in_utc() -> None:
    assert clock.read_controller("Configuration data as of 2026-11-20T22:21:46\nAccountingStorageHost") == 1795213306
    with pytest.raises(ValueError, match="scontrol said"):
        clock.read_controller("slurm_load_ctl_conf error")


H100 = {"vendor": "nvidia", "count": 2, "simulated": False, "maxUncorrectableErrors": 0}
FINE = [gpu.State("0", "P0", 0, False), gpu.State("1", "P8", 0, False)]


@pytest.mark.parametrize(
    ("devices", "states", "settings", "answer"),
    [
        pytest.param(2, FINE, H100, ("passed", "2 GPUs"), id="fine"),
        pytest.param(2, None, H100 | {"simulated": True}, ("passed", "2 simulated GPUs"), id="simulated"),
        pytest.param(1, None, H100 | {"simulated": True}, ("failed", "1 GPU devices, 2 declared"), id="simulated-and-too-few"),
        pytest.param(3, FINE, H100, ("failed", "3 GPU devices, 2 declared"), id="too-many"),
        pytest.param(2, FINE[:1], H100, ("failed", "1 GPUs answer, 2 declared"), id="one-fell-off"),
        pytest.param(
            2,
            None,
            H100,
            ("unknown", "2 of 2 GPU devices are there, but their state cannot be asked on this node"),
            id="a-right-count-without-a-state-is-unknown",
        ),
        pytest.param(1, None, H100, ("failed", "1 GPU devices, 2 declared"), id="a-wrong-count-fails-even-so"),
        pytest.param(
            2,
            [gpu.State("0", "[Unknown Error]", 0, False), gpu.State("1", "P0", 3, True)],
            H100,
            ("failed", "GPU 0 says [Unknown Error]; GPU 1 has 3 uncorrectable memory errors; GPU 1 has memory to be retired"),
            id="every-fault-is-named",
        ),
    ],
)
def test_gpu(devices: int, states: list[gpu.State] | None, settings: dict[str, Any], answer: tuple[str, str]) -> None:
    assert gpu.judge(devices, states, settings) == answer


def test_gpu_states_are_read_from_nvidia_smi() -> None:
    text = "0, P0, 0, [N/A], No\n1, P8, 2, Yes, [N/A]\n2, P0, [N/A], [N/A], Yes\n"
    assert gpu.read_states(text) == [
        gpu.State("0", "P0", 0, False),
        gpu.State("1", "P8", 2, True),
        gpu.State("2", "P0", 0, True),
    ]
    with pytest.raises(ValueError, match="nvidia-smi said"):
        gpu.read_states("No devices were found\n")


def test_count_of_memory_errors_that_cannot_be_read_is_not_none() -> None:
    with pytest.raises(ValueError, match=r"the memory errors of GPU 1 cannot be read: nvidia-smi says \[Unknown Error\]"):
        gpu.read_states("0, P0, 0, No, No\n1, P0, [Unknown Error], No, No\n")
    lost = gpu.read_states("0, [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]\n")
    assert gpu.judge(1, lost, H100 | {"count": 1})[0] == "failed"


@pytest.mark.parametrize(
    ("code", "output", "errors", "outcome"),
    [
        pytest.param(0, '{"result": "passed", "found": "x"}\n', "", Outcome(PASSED, "x"), id="passed"),
        pytest.param(0, 'noise\n{"result": "failed", "found": "x"}\n', "warning", Outcome(FAILED, "x"), id="failed"),
        pytest.param(0, '{"result": "unknown", "found": "x"}', "", Outcome(UNKNOWN, "x"), id="says-unknown"),
        pytest.param(
            1, '{"result": "passed", "found": "x"}', "boom", Outcome(UNKNOWN, "could not run: boom (exit code 1)"), id="passed-but-fell"
        ),
        pytest.param(0, "", "", Outcome(UNKNOWN, "could not run: no output (exit code 0)"), id="silent"),
        pytest.param(0, '{"result": "great"}', "", Outcome(UNKNOWN, "could not run: no output (exit code 0)"), id="other-word"),
        pytest.param(0, "[1]", "", Outcome(UNKNOWN, "could not run: no output (exit code 0)"), id="other-json"),
        pytest.param(124, "", "", Outcome(UNKNOWN, "did not end within 60 s"), id="too-slow"),
        pytest.param(
            1, "", "srun: error: Unable to allocate resources: Requested nodes are busy", Outcome(SKIPPED, "busy"), id="got-busy-meanwhile"
        ),
        pytest.param(
            1,
            "",
            "srun: error: Unable to allocate resources: Invalid account",
            Outcome(UNKNOWN, "could not run: srun: error: Unable to allocate resources: Invalid account (exit code 1)"),
            id="refused",
        ),
    ],
)
def test_job_answers(code: int, output: str, errors: str, outcome: Outcome) -> None:
    assert read_outcome(code, output, errors, 60) == outcome
