"""What the checks make of what they find on a node, and that anything but a whole answer counts as unknown."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from programs.node_checks import clock, command, disk, gpu, memory, mounts, mpi, storage, stream, vendor
from programs.node_checks.kinds import KINDS
from programs.node_checks.plan import FAILED, PASSED, PREEMPTED, SKIPPED, UNKNOWN, Outcome
from programs.node_checks.slurm import read_outcome
from tests.support.patience import patience
from tests.unit.programs.node_checks.vendors import answer, run_check, stand_in

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


@pytest.mark.parametrize(("mb_per_s", "result"), [pytest.param(1000, "passed", id="enough"), pytest.param(999, "failed", id="slow")])
def test_stream(mb_per_s: float, result: str) -> None:
    assert stream.judge(mb_per_s, 4, {"minBandwidthMBs": 1000})[0] == result


def test_stream_measures_this_machine() -> None:
    assert stream.measure(2, 1, 0.01) > 1


FAST = storage.Speed("/home", 100, 200, 5)
SPEEDS = {"minWriteMBs": 100, "minReadMBs": 200, "maxFsyncMs": 0}


@pytest.mark.parametrize(
    ("speeds", "limits", "answer"),
    [
        pytest.param([FAST], {}, ("passed", "/home: 100 MB/s written, 200 read"), id="just-enough"),
        pytest.param([FAST], {"minWriteMBs": 101}, ("failed", "/home writes at 100 MB/s, 101 wanted"), id="slow-to-write"),
        pytest.param([FAST], {"minReadMBs": 201}, ("failed", "/home reads at 200 MB/s, 201 wanted"), id="slow-to-read"),
        pytest.param([FAST], {"maxFsyncMs": 4}, ("failed", "/home takes 5 ms for an fsync, 4 allowed"), id="slow-to-sync"),
        pytest.param(
            [FAST, storage.Speed("/data", 1, 300, 1, True)],
            {},
            ("failed", "/data gives back other data than were written; /data writes at 1 MB/s, 100 wanted"),
            id="every-fault-is-named",
        ),
    ],
)
def test_storage(speeds: list[storage.Speed], limits: dict[str, int], answer: tuple[str, str]) -> None:
    assert storage.judge(speeds, SPEEDS | limits) == answer


def test_storage_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    speed = storage.measure(str(tmp_path), 1)
    assert min(speed.write_mb_per_s, speed.read_mb_per_s) > 0
    assert not speed.is_changed
    assert list(tmp_path.iterdir()) == []


def test_figures_of_mpi_count_as_others_do() -> None:
    assert mpi.figures("ping-pong", 2, 1_000_000, 0.01, 0.0001) == {"bandwidthMBs": 200.0, "latencyUs": 50.0}
    assert mpi.figures("all-reduce", 4, 1_000_000, 0.01, 0.0001) == {"bandwidthMBs": 150.0, "latencyUs": 100.0}
    assert (mpi.pace(0.1, 1), mpi.pace(10, 1), mpi.pace(0, 1)) == (10, 2, 1000)


def test_job_that_a_users_job_preempted_is_skipped() -> None:
    killed = "srun: Job step aborted\nslurmstepd: error: *** STEP 7.0 ON cpu-0 CANCELLED AT 2026-01-02T03:04:05 DUE TO PREEMPTION ***"
    assert read_outcome(143, "", killed, 60) == PREEMPTED


H100 = {**KINDS["gpu"].limits, "vendor": "nvidia", "count": 2, "simulated": False}
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


CORE = ("index", "pstate", "ecc.errors.uncorrected.volatile.total", "retired_pages.pending", "remapped_rows.failure")


def test_gpu_states_are_read_from_nvidia_smi() -> None:
    text = "0, P0, 0, [N/A], No\n1, P8, 2, Yes, [N/A]\n2, P0, [N/A], [N/A], Yes\n"
    assert gpu.read_states(text, CORE) == [
        gpu.State("0", "P0", 0, False),
        gpu.State("1", "P8", 2, True),
        gpu.State("2", "P0", 0, True),
    ]
    with pytest.raises(ValueError, match="nvidia-smi said"):
        gpu.read_states("No devices were found\n")


def test_count_of_memory_errors_that_cannot_be_read_is_not_none() -> None:
    with pytest.raises(ValueError, match=r"the memory errors of GPU 1 cannot be read: nvidia-smi says \[Unknown Error\]"):
        gpu.read_states("0, P0, 0, No, No\n1, P0, [Unknown Error], No, No\n", CORE)
    lost = gpu.read_states("0, [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]\n", CORE)
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
        pytest.param(0, '{"result": "skipped", "found": "no disk"}', "", Outcome(UNKNOWN, "no disk"), id="nothing-to-look-at-is-unknown"),
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


@pytest.mark.parametrize(
    ("code", "output", "errors", "answer"),
    [
        pytest.param(0, "", "", ("passed", "/opt/fabric has found nothing"), id="passed"),
        pytest.param(0, "8 ports up\n", "", ("passed", "8 ports up"), id="passed-with-words"),
        pytest.param(1, "looking\nport 3 is down\n\n", "", ("failed", "port 3 is down"), id="failed-and-its-last-line-says-what"),
        pytest.param(1, "port 3 is down\n", "noise\n", ("failed", "port 3 is down"), id="what-it-prints-comes-before-what-it-complains-of"),
        pytest.param(1, "", "no link\n", ("failed", "no link"), id="failed-and-only-complained"),
        pytest.param(1, "", "", ("failed", "/opt/fabric ended with 1, and printed nothing"), id="failed-without-a-word"),
        pytest.param(1, "x" * 1000, "", ("failed", "x" * 200), id="a-long-line-is-cut"),
        pytest.param(2, "", "usage: fabric\n", ("unknown", "/opt/fabric ended with 2: usage: fabric"), id="usage-is-unknown"),
        pytest.param(127, "", "", ("unknown", "/opt/fabric ended with 127"), id="not-found-by-its-shell"),
        pytest.param(-9, "", "", ("unknown", "/opt/fabric was killed by signal 9"), id="killed-is-unknown"),
    ],
)
def test_command(code: int, output: str, errors: str, answer: tuple[str, str]) -> None:
    assert command.judge(code, output, errors, {"command": ["/opt/fabric"]}) == answer


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        pytest.param(["sh", "-c", "echo port 3 is down; exit 1"], {"result": "failed", "found": "port 3 is down"}, id="failed"),
        pytest.param(
            ["/nowhere/fabric"], {"result": "unknown", "found": "/nowhere/fabric is not on this node, or may not be executed"}, id="missing"
        ),
        pytest.param(["cat"], {"result": "passed", "found": "cat has found nothing"}, id="no-input"),
    ],
)
def test_command_is_run(
    words: list[str], answer: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["-", json.dumps({"command": words})])
    command.main()
    assert json.loads(capsys.readouterr().out) == answer


def test_command_beside_jobs_is_told_little(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_UID": "10001",
        "SPANK_X": "a user's",
        "LD_PRELOAD": "",
        "SLURMD_NODENAME": "n-0",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    expected = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURMD_NODENAME": "n-0", "SLURM_JOB_ID": "7", "SLURM_JOB_UID": "10001"}
    assert command.environment() == expected
    monkeypatch.setattr(os, "getuid", lambda: 64030)
    assert command.environment() is None


def test_command_that_prints_without_measure_is_kept_in_part() -> None:
    code, output, errors = command.run(["sh", "-c", "yes x | head --bytes=9000000; echo y; echo z >&2; exit 1"], "/bin/sh", None)
    assert (code, len(output), output[-4:], errors) == (1, 65536, "x\ny\n", "z\n")


def test_command_that_leaves_a_process_with_its_pipe_is_not_waited_for() -> None:
    began = time.monotonic()
    code, output, _ = command.run(["sh", "-c", "sleep 600.5 & echo $!; exit 1"], "/bin/sh", None)
    os.kill(int(output), signal.SIGKILL)
    assert code == 1
    assert time.monotonic() - began < 60 * patience()


MOUNTINFO = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 22 0:26 / /home rw,relatime shared:5 - nfs4 10.0.0.9:/home rw
32 22 0:27 / /data/two\\040words rw - nfs4 10.0.0.9:/data rw
"""


def test_folders_that_are_mounted_are_read_from_mountinfo() -> None:
    assert mounts.mounted(MOUNTINFO) == {"/", "/home", "/data/two words"}


@pytest.mark.parametrize(
    ("answers", "answer"),
    [
        pytest.param({"/home": "", "/data": ""}, ("passed", "2 shared folders answer"), id="all-answer"),
        pytest.param(
            {"/home": "is not mounted", "/data": "does not answer within 20 s", "/scratch": ""},
            ("failed", "/home is not mounted; /data does not answer within 20 s"),
            id="every-fault-is-named",
        ),
    ],
)
def test_mounts(answers: dict[str, str], answer: tuple[str, str]) -> None:
    assert mounts.judge(answers) == answer


def test_folders_are_asked_at_once_and_a_silent_one_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statvfs = os.statvfs

    def slow(path: str) -> os.statvfs_result:
        if "silent" in path:
            time.sleep(600)
        return statvfs(path)

    monkeypatch.setattr(os, "statvfs", slow)
    paths = [str(tmp_path), str(tmp_path / "silent"), str(tmp_path / "gone"), "/nowhere"]
    answers_s = round(2 * patience())
    found = mounts.ask(paths, set(paths[:3]), answers_s)
    assert found.pop(paths[2]).startswith("gave an error: No such file or directory")
    assert found == {paths[0]: "", paths[1]: f"does not answer within {answers_s} s", paths[3]: "is not mounted"}


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "trusted", "fault"),
    [
        pytest.param(0o755, 0o755, True, "", id="its-owner-alone"),
        pytest.param(0o775, 0o755, True, "fabric can be changed by others", id="file-of-a-group"),
        pytest.param(0o755, 0o777, True, "checks can be changed by others", id="folder-of-everybody"),
        pytest.param(0o755, 0o1777, True, "", id="folder-where-nobody-replaces-files-of-others"),
        pytest.param(0o755, 0o755, False, "fabric belongs to user", id="file-of-somebody-else"),
    ],
)
def test_command_that_others_could_change_is_told(
    file_mode: int, folder_mode: int, trusted: bool, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "fabric").touch()
    (folder / "fabric").chmod(file_mode)
    folder.chmod(folder_mode)
    (tmp_path / "link").symlink_to(folder / "fabric")
    found = vendor.changeable(tmp_path / "link", {os.getuid(), 0} if trusted else {0xFFFF})
    assert fault in found
    assert bool(found) == bool(fault)


def test_link_in_a_folder_that_others_could_change_is_told(tmp_path: Path) -> None:
    """Whoever may write there replaces the link, whatever it leads to."""
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "fabric").symlink_to("/usr/bin/true")
    (tmp_path / "way").symlink_to("checks/fabric")
    assert vendor.changeable(tmp_path / "way", {os.getuid(), 0}) == ""
    folder.chmod(0o777)
    for path in (folder / "fabric", tmp_path / "way"):
        assert "checks can be changed by others" in vendor.changeable(path, {os.getuid(), 0})
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises((OSError, RuntimeError)):
        vendor.changeable(tmp_path / "circle", {os.getuid(), 0})


def test_command_is_run_where_its_links_lead(tmp_path: Path) -> None:
    stand_in(tmp_path, "fabric", "", first='echo "$0"; exit 0')
    (tmp_path / "link").symlink_to("fabric")
    said = answer(run_check("command", {"command": [str(tmp_path / "link")]}, tmp_path))
    assert (said["result"], said["found"]) == ("passed", str(tmp_path / "fabric"))
