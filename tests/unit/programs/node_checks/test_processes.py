"""The check of processes that hang in the kernel: what it reads, and real ones in state D, by their user's doing and on a frozen disk."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from programs.node_checks import processes
from programs.node_checks.processes import Stuck
from tests.support.patience import patience
from tests.unit.programs.node_checks.vendors import wait_until

STAT = "{} ({}) {} 1 7 7 0 -1 4194304 88 0 0 0 1 0 0 0 20 0 1 0 {} 2400000 200 18446744073709551615"
"""/proc/N/stat of Linux 6: number, name, state, and as the 22nd word the start in ticks."""
STATUS = "Name:\tdd\nvoluntary_ctxt_switches:\t16\nnonvoluntary_ctxt_switches:\t2\n"
PLAIN = 10001
HOST_MAP, USERS_MAP = "         0          0 4294967295\n", "         0      10001          1\n"
ROOTS_FUSE = "40 22 0:50 / /data rw - fuse.s3 s3 rw,user_id=0,group_id=0,allow_other\n"
USERS_FUSE = "41 22 0:51 / /home/a/x rw - fuse.sshfs host: rw,user_id=10001,group_id=10001\n"
CONTROL = "30 22 0:40 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"


@pytest.mark.parametrize(
    ("text", "process"),
    [
        pytest.param(STAT.format(12, "dd", "D", 555), Stuck(12, 555, "dd", "16 2"), id="hangs"),
        pytest.param(STAT.format(12, "dd", "S", 555), None, id="sleeps"),
        pytest.param(STAT.format(12, "tmux: (1) D 2", "D", 555), Stuck(12, 555, "tmux: (1) D 2", "16 2"), id="name-that-looks-like-more"),
        pytest.param(STAT.format(12, "two\nlines", "D", 555), Stuck(12, 555, "two\nlines", "16 2"), id="name-of-two-lines"),
        pytest.param("12 (dd) D 1 2", None, id="cut"),
        pytest.param("", None, id="ended"),
    ],
)
def test_process_that_hangs_is_told_from_others(text: str, process: Stuck | None) -> None:
    assert processes.stuck_of(text, STATUS) == process


def some(*numbers: int) -> set[Stuck]:
    return {Stuck(number, 1, "dd", "") for number in numbers}


@pytest.mark.parametrize(
    ("stuck", "unclear", "most", "answer"),
    [
        pytest.param(some(), some(), 0, ("passed", "no process hangs in the kernel"), id="none"),
        pytest.param(some(7), some(), 1, ("passed", "1 processes hang in the kernel"), id="as-many-as-may"),
        pytest.param(some(7), some(), 0, ("failed", "dd (7) in state D for 10 s, 0 allowed"), id="one"),
        pytest.param(some(*range(5)), some(), 0, ("failed", "dd (0), dd (1), dd (2) and 2 more in state D for 10 s, 0 allowed"), id="many"),
        pytest.param(
            some(), some(7), 0, ("unknown", "dd (7) in state D for 10 s, and the kernel does not tell what for"), id="one-that-is-not-clear"
        ),
        pytest.param(some(8), some(7), 0, ("failed", "dd (8) in state D for 10 s, 0 allowed"), id="one-beside-one-that-is-not-clear"),
    ],
)
def test_processes_in_words(stuck: set[Stuck], unclear: set[Stuck], most: int, answer: tuple[str, str]) -> None:
    assert processes.judge(stuck, {"maxStuck": most, "stuckS": 10}, unclear) == answer


@pytest.mark.parametrize(
    ("wchan", "user_map", "mounts", "is_own"),
    [
        pytest.param("kernel_clone", HOST_MAP, "", True, id="vfork"),
        pytest.param("_do_fork", HOST_MAP, "", True, id="vfork-before-5.10"),
        pytest.param("seccomp_do_user_notification.isra.0", HOST_MAP, "", True, id="seccomp"),
        pytest.param("coredump_task_exit", HOST_MAP, "", True, id="core-of-another-thread"),
        pytest.param("de_thread", HOST_MAP, "", True, id="exec-beside-a-traced-thread"),
        pytest.param("handle_userfault", HOST_MAP, "", True, id="userfaultfd"),
        pytest.param("request_wait_answer", HOST_MAP, CONTROL + ROOTS_FUSE + USERS_FUSE, True, id="fuse-of-a-user"),
        pytest.param("request_wait_answer", USERS_MAP, ROOTS_FUSE, True, id="fuse-in-a-users-namespace"),
        pytest.param("request_wait_answer", HOST_MAP, CONTROL + ROOTS_FUSE, False, id="fuse-of-the-site"),
        pytest.param("rpc_wait_bit_killable", HOST_MAP, USERS_FUSE, False, id="nfs"),
        pytest.param("folio_wait_bit_common", USERS_MAP, "", False, id="disk"),
        pytest.param("0", HOST_MAP, "", None, id="not-told"),
        pytest.param("", HOST_MAP, "", None, id="empty"),
        pytest.param(None, HOST_MAP, "", None, id="gone"),
    ],
)
def test_wait_that_a_user_decides_on(wchan: str | None, user_map: str, mounts: str, is_own: bool | None, tmp_path: Path) -> None:
    for name in ("7", "self"):
        (tmp_path / name).mkdir()
    (tmp_path / "self/uid_map").write_text(HOST_MAP)
    (tmp_path / "7/uid_map").write_text(user_map)
    (tmp_path / "7/mountinfo").write_text(f"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n{mounts}")
    if wchan is not None:
        (tmp_path / "7/wchan").write_text(wchan)
    assert processes.waits_for_its_user(tmp_path, Stuck(7, 1, "dd", "")) is is_own


@pytest.fixture(scope="module")
def waits() -> Iterator[Path]:
    """The program of waits.c, where a plain user may run it."""
    with tempfile.TemporaryDirectory(prefix="slipway-waits-") as folder:
        Path(folder).chmod(0o755)
        program = Path(folder) / "waits"
        subprocess.run(
            ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, Path(__file__).with_name("waits.c"), "-lpthread"], check=True
        )
        yield program


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("child", "60", "1"), id="child-of-vfork"),
        pytest.param(("seccomp",), id="answer-of-seccomp"),
        pytest.param(("child", "0.4", "150"), id="many-children"),
    ],
)
def test_real_process_that_waits_for_its_user_is_no_hang(waits: Path, words: tuple[str, ...]) -> None:
    """In state D at each look."""
    with subprocess.Popen([waits, *words], user=PLAIN, group=PLAIN, start_new_session=True) as process:
        try:
            assert wait_until(lambda: process.pid in numbers(processes.look(Path("/proc"))))
            hanging, unclear = processes.find(Path("/proc"), 1)
            assert process.pid not in numbers(hanging | unclear)
            assert process.poll() is None
        finally:
            os.killpg(process.pid, 9)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system of its own, on which everybody may write."""
    with tempfile.TemporaryDirectory(prefix="slipway-disk-") as base:
        image, folder = Path(base) / "image", Path(base) / "mount"
        Path(base).chmod(0o755)
        folder.mkdir()
        subprocess.run(["truncate", "--size=8M", image], check=True)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, folder], check=True)
        folder.chmod(0o777)
        yield folder
        subprocess.run(["umount", folder], check=True)


def test_real_process_that_hangs_is_found(disk: Path) -> None:
    """A plain user's, on a disk that does not answer."""
    subprocess.run(["fsfreeze", "--freeze", disk], check=True)
    try:
        process = subprocess.Popen(["/bin/sh", "-c", f"exec >{disk}/file; echo x"], user=PLAIN, group=PLAIN)
        assert wait_until(lambda: process.pid in numbers(processes.look(Path("/proc"))))
        hanging, _ = processes.find(Path("/proc"), 1)
        assert process.pid in numbers(hanging)
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)
    assert process.wait(60 * patience()) == 0


def numbers(found: set[Stuck]) -> set[int]:
    return {each.number for each in found}
