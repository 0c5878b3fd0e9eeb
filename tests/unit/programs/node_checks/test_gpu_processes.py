"""Which processes on GPUs belong to no job, from what nvidia-smi lists and /proc shows."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from programs.node_checks import gpu, gpu_processes
from programs.node_checks.kinds import KINDS
from tests.unit.programs.node_checks.recorded import SMI
from tests.unit.programs.node_checks.vendors import stand_in

GPU = "GPU-11111111-2222-3333-4444-555555555555"
JOB_V1 = "9:pids:/slurm/uid_10001/job_42/step_0\n4:memory:/slurm/uid_10001/job_42/step_0/task_0\n0::/"
JOB_V2 = "0::/kubepods.slice/pod1/system.slice/slurmstepd.scope/s7F1M7YKC71F00/step_extern/user/task_0"
POD = "9:pids:/kubepods/pod1/4711\n0::/kubepods.slice/pod1/slipway"


def process(proc: Path, number: int, program: str = "/usr/bin/python3.13", groups: str = POD, file: str = "/dev/nvidia0") -> None:
    """A process as /proc has it, with one file open."""
    folder = proc / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "exe").symlink_to(program)
    (folder / "cgroup").write_text(f"{groups}\n")
    (folder / "fd/7").symlink_to(file)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        pytest.param({}, [f"python3.13 (4711) on {GPU}"], id="of-no-job"),
        pytest.param({"program": "/tmp/miner (deleted)"}, [f"miner (4711) on {GPU}"], id="its-file-is-gone"),
        pytest.param({"groups": JOB_V1}, [], id="of-a-job"),
        pytest.param({"groups": JOB_V2}, [], id="of-a-job-with-cgroup-v2"),
        pytest.param({"groups": "0::/machine.slice/job_worker/my_step_0"}, [f"python3.13 (4711) on {GPU}"], id="group-that-looks-like-one"),
        pytest.param({"file": "/dev/null"}, [], id="number-of-the-machine-that-another-process-has-here"),
        pytest.param({"program": "/usr/bin/nvidia-persistenced"}, [], id="persistence-daemon"),
        pytest.param({"program": "/usr/bin/nv-hostengine"}, [], id="dcgm"),
        pytest.param({"program": "/usr/bin/dcgm-exporter"}, [], id="dcgm-exporter"),
        pytest.param({"program": "/usr/bin/nvidia-cuda-mps-server"}, [], id="mps"),
        pytest.param({"program": "/tmp/nvidia-miner"}, [f"nvidia-miner (4711) on {GPU}"], id="name-like-the-drivers"),
    ],
)
def test_process_on_a_gpu(facts: dict[str, str], found: list[str], tmp_path: Path) -> None:
    process(tmp_path, 4711, **facts)
    assert gpu_processes.foreign({4711: GPU}, tmp_path) == found


def test_process_that_is_not_visible_here_or_has_ended_is_not_judged(tmp_path: Path) -> None:
    process(tmp_path, 12)
    (tmp_path / "12/cgroup").unlink()
    assert gpu_processes.foreign({4711: GPU, 12: GPU}, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        pytest.param(f"4711, {GPU}, 81559\n12, {GPU}, [N/A]\n", {4711: GPU, 12: GPU}, id="two"),
        pytest.param("", {}, id="none"),
        pytest.param("No running processes found\n", {}, id="none-in-words"),
        pytest.param(f"[Insufficient Permissions], {GPU}, [Insufficient Permissions]\n", {}, id="hidden"),
    ],
)
def test_processes_are_read_from_nvidia_smi(text: str, listed: dict[int, str]) -> None:
    assert gpu_processes.read_processes(text) == listed


@pytest.mark.parametrize(
    ("count", "most", "said"),
    [
        pytest.param(0, 0, "", id="none"),
        pytest.param(2, 2, "", id="as-many-as-may"),
        pytest.param(1, 0, "processes of no job use GPUs: p0", id="one"),
        pytest.param(5, 1, "processes of no job use GPUs: p0, p1, p2 and 2 more (1 allowed)", id="many"),
    ],
)
def test_number_of_processes_is_judged(count: int, most: int, said: str) -> None:
    assert gpu_processes.fault([f"p{each}" for each in range(count)], most) == said


def asked(folder: Path, listed: str, monkeypatch: pytest.MonkeyPatch, ends: int = 0) -> tuple[str, str]:
    """What the check finds beside jobs on a node with one GPU that is full and busy, whose nvidia-smi lists these processes."""
    state = ", ".join({**SMI, "memory": "81559", "utilization": "100"}.values())
    first = f'case "$1" in --query-compute-apps=*) printf "{listed}"; exit {ends};; esac'
    stand_in(folder, "nvidia-smi", f"{state}\n", first=first)
    monkeypatch.setattr(gpu, "_FOLDERS", (str(folder),))
    settings = {**KINDS["gpu"].limits, "maxIdleMemoryMiB": 0, "vendor": "nvidia", "count": 1, "simulated": False}
    return gpu.judge(1, gpu.ask("nvidia", asks_nvlinks=False), settings, gpu.ask_strangers("nvidia", folder / "proc"))


def test_users_job_that_uses_all_of_a_gpu_never_looks_like_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        process(tmp_path / "proc", number + 100, groups=JOB_V1 if number % 2 else JOB_V2)
    listed = "".join(f"{number + 100}, {GPU}, 10194\\n" for number in range(8))
    assert asked(tmp_path, listed, monkeypatch) == ("passed", "1 GPUs")


def test_process_of_no_job_beside_a_users_job_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(tmp_path / "proc", 100, groups=JOB_V1)
    process(tmp_path / "proc", 101, program="/root/miner")
    found = asked(tmp_path, f"100, {GPU}, 1\\n101, {GPU}, [N/A]\\n", monkeypatch)
    assert found == ("failed", f"processes of no job use GPUs: miner (101) on {GPU}")


def test_driver_that_lists_no_processes_is_not_judged_by_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(tmp_path / "proc", 101)
    assert asked(tmp_path, f"101, {GPU}, 1\\n", monkeypatch, ends=3) == ("passed", "1 GPUs")


def test_real_process_of_no_job_is_found_by_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file stands for the GPU that the process has open."""
    device = tmp_path / "nvidia0"
    device.touch()
    monkeypatch.setattr(gpu_processes, "_DEVICE", re.compile(re.escape(str(device))))
    with device.open() as opened, subprocess.Popen(["sleep", "600"], stdin=opened) as stranger:
        try:
            state = f'case "$1" in --query-gpu=*) echo "{", ".join(SMI.values())}"; exit;; esac'
            stand_in(tmp_path, "nvidia-smi", f"{stranger.pid}, {GPU}, 1\n", first=state)
            monkeypatch.setattr(gpu, "_FOLDERS", (str(tmp_path),))
            settings = {**KINDS["gpu"].limits, "vendor": "nvidia", "count": gpu.count_devices("nvidia"), "simulated": False}
            monkeypatch.setattr("sys.argv", ["-", json.dumps({**settings, "maxIdleMemoryMiB": 0})])
            gpu.main()
        finally:
            stranger.kill()
    assert f"sleep ({stranger.pid}) on {GPU}" in json.loads(capsys.readouterr().out)["found"]
