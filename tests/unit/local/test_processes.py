"""A recorded process is that very process: never one that has got its id later, never a zombie."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import processes
from local.commands import wait_until
from local.processes import Identity, Program, Record, parse_record, parse_stat, plan_start
from tests.support.patience import patience

BOOT = "0f0e"
REST = " ".join(["0"] * 17)


def stat_line(pid: int, name: str, state: str, ticks: int) -> str:
    """/proc/PID/stat: id, (name), state, 18 fields of no interest, start time in ticks, and more."""
    return f"{pid} ({name}) {state} 1 {REST} {ticks} 12345 678 0\n"


@given(name=st.text(st.characters(codec="ascii", exclude_characters="\n\0"), min_size=1, max_size=15), ticks=st.integers(0, 2**40))
def test_start_time_is_found_whatever_the_program_is_called(name: str, ticks: int) -> None:
    assert parse_stat(stat_line(42, name, "S", ticks), BOOT) == Identity(42, ticks, BOOT)


@pytest.mark.parametrize("state", [pytest.param("Z", id="zombie"), pytest.param("X", id="dead")])
def test_ended_process_has_no_identity(state: str) -> None:
    assert parse_stat(stat_line(42, "kubelet", state, 7), BOOT) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("42 7", id="cut short"),
        pytest.param("x 7 boot digest", id="no number"),
        pytest.param("42 7 boot digest more", id="too long"),
    ],
)
def test_broken_record_is_no_record(text: str) -> None:
    assert parse_record("etcd", text) is None


def test_record_is_read_as_written() -> None:
    assert parse_record("etcd", "42 7 0f0e d1\n") == Record("etcd", Identity(42, 7, "0f0e"), "d1")


ETCD, API = Program("etcd", ("etcd", "--a")), Program("api", ("api",), watched="config")


def running(program: Program, digest: str | None = None) -> dict[str, Record]:
    return {program.name: Record(program.name, Identity(1, 1, BOOT), digest or program.digest)}


@pytest.mark.parametrize(
    ("alive", "stopped", "started"),
    [
        pytest.param({}, [], ["etcd", "api"], id="nothing runs"),
        pytest.param(running(ETCD), [], ["api"], id="one was killed"),
        pytest.param(running(ETCD) | running(API), [], [], id="all run"),
        pytest.param(running(ETCD) | running(API, "older"), ["api"], ["api"], id="one runs with an older configuration"),
    ],
)
def test_only_what_needs_it_is_started(alive: dict[str, Record], stopped: list[str], started: list[str]) -> None:
    outdated, to_start = plan_start([ETCD, API], alive)
    assert [record.name for record in outdated] == stopped
    assert [program.name for program in to_start] == started


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(API, argv=("api", "--new")), id="command line"),
        pytest.param(replace(API, watched="changed"), id="configuration"),
    ],
)
def test_digest_follows(other: Program) -> None:
    assert other.digest != API.digest


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[tuple[Path, Record]]:
    """A real program, started and recorded."""
    program = Program("sleeper", ("sleep", "1000"))
    records = tmp_path / "records"
    processes.keep_running([program], records, tmp_path / "logs")
    record = processes.running(records)["sleeper"]
    yield records, record
    processes.stop([record], records, grace_s=0)


def test_program_runs_in_a_session_of_its_own_and_is_recorded(sleeper: tuple[Path, Record]) -> None:
    _, record = sleeper
    fields = Path(f"/proc/{record.identity.pid}/stat").read_text().rpartition(")")[2].split()
    assert fields[3] == str(record.identity.pid)
    # The record is written just before the launcher becomes the program.
    command = Path(f"/proc/{record.identity.pid}/cmdline")
    wait_until("the program runs", lambda: command.read_bytes() == b"sleep\x001000\x00", timeout_s=10 * patience())


def test_running_program_is_not_started_again(sleeper: tuple[Path, Record], tmp_path: Path) -> None:
    records, record = sleeper
    assert processes.keep_running([Program("sleeper", ("sleep", "1000"))], records, tmp_path / "logs") == []
    assert processes.running(records) == {"sleeper": record}


def test_changed_program_replaces_the_running_one(sleeper: tuple[Path, Record], tmp_path: Path) -> None:
    records, record = sleeper
    changed = Program("sleeper", ("sleep", "2000"))
    assert processes.keep_running([changed], records, tmp_path / "logs") == ["sleeper"]
    now = processes.running(records)["sleeper"]
    assert now.identity != record.identity
    assert not processes.is_alive(record, processes.boot_id())
    processes.stop([now], records, grace_s=0)


def test_stop_ends_it_and_forgets_it(sleeper: tuple[Path, Record]) -> None:
    records, record = sleeper
    processes.stop([record], records)
    assert processes.read_records(records) == {}
    assert not processes.is_alive(record, processes.boot_id())


@pytest.mark.parametrize("grace_s", [pytest.param(10.0, id="asked first"), pytest.param(0.0, id="killed at once")])
def test_reused_process_id_is_never_signalled(tmp_path: Path, grace_s: float) -> None:
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        now = processes.observe(bystander.pid, processes.boot_id())
        assert now is not None
        stale = [
            Record("earlier", replace(now, start_ticks=now.start_ticks - 1), "d"),
            Record("before-boot", replace(now, boot_id="another"), "d"),
        ]
        processes.stop(stale, tmp_path, grace_s)
        assert bystander.poll() is None
        bystander.kill()


def test_program_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    program = Program("deaf", ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"))
    processes.keep_running([program], tmp_path / "records", tmp_path / "logs")
    while "ready" not in (tmp_path / "logs" / "deaf.log").read_text():
        pass
    record = processes.running(tmp_path / "records")["deaf"]
    processes.stop([record], tmp_path / "records", grace_s=0.2)
    assert processes.running(tmp_path / "records") == {}
