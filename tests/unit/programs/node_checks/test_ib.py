"""The check of InfiniBand and RoCE between two nodes: which ports, what ib_write_bw prints, and two tasks that find each other."""

import contextlib
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks import ib, meeting
from programs.node_checks.ib import Test as PortTest
from programs.node_checks.kinds import KINDS
from programs.node_checks.meeting import Line
from programs.node_checks.plan import UNKNOWN, Outcome
from programs.node_checks.slurm import read_outcome
from programs.node_checks.vendor import CannotRunError
from tests.support.patience import patience
from tests.unit.programs.node_checks import recorded_vendors as recorded
from tests.unit.programs.node_checks.vendors import answer, run_check, stand_in

LIMITS: dict[str, Any] = {**KINDS["ib"].limits, "seconds": 1, "command": []}
PORT = "mlx5_0/1"


def port(sysfs: Path, device: str, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)", driver: str = "mlx5_core") -> None:
    folder = sysfs / device / "ports/1"
    folder.mkdir(parents=True)
    (folder / "state").write_text(f"{state}\n")
    (folder / "phys_state").write_text("5: LinkUp\n")
    (folder / "rate").write_text(f"{rate}\n")
    (sysfs / device / "device").mkdir()
    (sysfs / driver).mkdir(exist_ok=True)
    (sysfs / device / "device/driver").symlink_to(sysfs / driver)


def test_active_ports_but_those_of_efa_are_tested(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0")
    port(tmp_path, "mlx5_1", state="1: DOWN")
    port(tmp_path, "rdmap16s27", rate="100 Gb/sec (4X EDR)", driver="efa")
    assert ib.look(tmp_path) == {PORT: 400}
    assert ib.look(tmp_path / "none") == {}
    assert ib.shared({PORT: 400, "mlx5_2/1": 200}, {PORT: 200, "mlx5_3/1": 400}) == {PORT: 200}


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        pytest.param(recorded.ib("391.42"), 391.42, id="average"),
        pytest.param(recorded.ib("0.042185", "0.042350"), 0.042185, id="peak-is-not-taken"),
        pytest.param(recorded.ib("391.42").replace("[Gb/sec]", "[MB/sec]"), None, id="other-unit"),
        pytest.param(recorded.ib("0.00"), None, id="nothing-written"),
        pytest.param(recorded.ib("391.42")[:-200], None, id="cut"),
        pytest.param(recorded.IB_NO_DEVICE, None, id="no-device"),
        pytest.param("", None, id="silent"),
    ],
)
def test_average_is_read(text: str, gbps: float | None) -> None:
    assert ib.read(text) == gbps


@pytest.mark.parametrize(
    ("tests", "limits", "result", "found"),
    [
        pytest.param([PortTest(PORT, 400, 391.4)], {}, "passed", "1 ports, of which mlx5_0/1 is the slowest: 391.4 of 400", id="passed"),
        pytest.param([PortTest(PORT, 400, 320)], {}, "passed", "320 of 400 Gbit/s", id="just-fast-enough"),
        pytest.param([PortTest(PORT, 400, 319)], {}, "failed", "writes at 319 of 400 Gbit/s, 320 wanted", id="below-its-share"),
        pytest.param([PortTest(PORT, 400, 390)], {"minRateGbps": 395}, "failed", "395 wanted", id="below-the-users-limit"),
        pytest.param([PortTest(PORT, 400, 1)], {"minShareOfRatePercent": 0}, "passed", "1 ports", id="no-limit"),
        pytest.param(
            [PortTest(PORT, 400, 100), PortTest("mlx5_1/1", 400, None, "Failed status 12", True), PortTest("mlx5_2/1", 400, None, "x")],
            {},
            "failed",
            "mlx5_0/1 writes at 100 of 400 Gbit/s, 320 wanted; mlx5_1/1 cannot write: Failed status 12",
            id="every-fault-is-named",
        ),
        pytest.param([PortTest(PORT, 400, 391), PortTest("mlx5_1/1", 400, None, "x")], {}, "unknown", "mlx5_1/1: x", id="one-untested"),
        pytest.param([], {}, "unknown", "no active InfiniBand or RoCE port", id="no-port"),
    ],
)
def test_ports_are_judged(tests: list[PortTest], limits: dict[str, int], result: str, found: str) -> None:
    said, words = ib.judge(tests, LIMITS | limits)
    assert said == result
    assert found in words


@pytest.mark.parametrize(
    ("code", "output", "test"),
    [
        pytest.param(0, recorded.ib("391.42"), PortTest(PORT, 400, 391.42), id="measured"),
        pytest.param(1, recorded.ib("391.42"), PortTest(PORT, 400, None, f"ib_write_bw ended with 1: {'-' * 87}"), id="ended-badly"),
        pytest.param(1, recorded.IB_LOST, PortTest(PORT, 400, None, "Completion with error at client", True), id="writes-get-lost"),
        pytest.param(
            1,
            recorded.IB_NO_DEVICE,
            PortTest(PORT, 400, None, "ib_write_bw ended with 1: Unable to find the Infiniband/RoCE device"),
            id="no-device",
        ),
        pytest.param(
            1, recorded.IB_NO_MEMORY, PortTest(PORT, 400, None, "ib_write_bw ended with 1: Couldn't create IB resources"), id="no-memory"
        ),
        pytest.param(-11, "", PortTest(PORT, 400, None, "ib_write_bw ended with -11: printed nothing"), id="crashed"),
    ],
)
def test_end_of_a_client_is_told(code: int, output: str, test: PortTest) -> None:
    assert ib.judge_client(code, output, PORT, 400) == test


@given(st.text() | st.lists(st.sampled_from(recorded.ib("391.42").splitlines()) | st.text()).map("\n".join), st.integers(0, 1))
def test_no_text_is_an_error_and_only_a_figure_passes(text: str, code: int) -> None:
    test = ib.judge_client(code, text, PORT, 400)
    said, _ = ib.judge([test], LIMITS)
    assert said in ("passed", "failed", "unknown")
    assert said != "passed" or (code == 0 and "391.42" in text)


WRITES = """#!/usr/bin/env python3
# As perftest: with a host it is the client, else a server, which takes one client and ends after it.
import pathlib, socket, sys
folder = pathlib.Path(__file__).parent
number = int(sys.argv[sys.argv.index("-p") + 1])
device = sys.argv[sys.argv.index("-d") + 1]
if sys.argv[-1] == "--report_gbits":
    if (folder / "server-fails").exists():
        sys.exit(" Unable to create QP.")
    server = socket.create_server(("", number))
    server.accept()[0].recv(1)
    print("done")
else:
    try:
        socket.create_connection((sys.argv[-1], number), timeout=5).sendall(b"x")
    except OSError:
        sys.exit(f"Couldn't connect to {sys.argv[-1]}:{number}")
    print((folder / device).read_text())
    sys.exit(int("Failed status" in (folder / device).read_text()))
"""


def installed(folder: Path, **outputs: str) -> list[str]:
    program = folder / "ib_write_bw"
    program.write_text(WRITES)
    program.chmod(0o755)
    for device, output in outputs.items():
        (folder / device).write_text(output)
    return [str(program)]


def between(program: list[str], mine: dict[str, float], theirs: dict[str, float], seconds: int = 1) -> list[PortTest]:
    """A run of both tasks, over a connection of their own."""
    one, other = socket.socketpair()
    rank_1 = threading.Thread(target=ib.serve, args=(Line(other, 20 * patience()), program, theirs, seconds))
    rank_1.start()
    try:
        return ib.write(Line(one, 20 * patience()), "127.0.0.1", program, mine, seconds)
    finally:
        rank_1.join(20 * patience())
        assert not rank_1.is_alive()


def test_each_shared_port_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_AROUND_S", "_CONNECTS_S"):
        monkeypatch.setattr(ib, limit, getattr(ib, limit) * patience())
    program = installed(tmp_path, mlx5_0=recorded.ib("391.42"), mlx5_1=recorded.IB_LOST)
    mine, theirs = {PORT: 400.0, "mlx5_1/1": 400.0, "mlx5_2/1": 400.0}, {PORT: 400.0, "mlx5_1/1": 400.0, "mlx5_3/1": 400.0}
    fine, lost = between(program, mine, theirs)
    assert fine == PortTest(PORT, 400, 391.42)
    assert lost.is_broken
    assert lost.said.startswith("Completion with error at client")


def test_server_that_does_not_start_is_told_and_nobodys_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ib, "_CONNECTS_S", 0)
    monkeypatch.setattr(ib, "_ENDS_S", 2 * patience())
    program = installed(tmp_path, mlx5_0=recorded.ib("391.42"))
    (tmp_path / "server-fails").touch()
    [test] = between(program, {PORT: 400.0}, {PORT: 400.0})
    assert (test.gbps, test.is_broken) == (None, False)
    assert "Couldn't connect to 127.0.0.1" in test.said
    assert test.said.endswith("; 127.0.0.1: Unable to create QP.")


def test_client_that_hangs_is_ended_and_its_server_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ib, "_AROUND_S", 0.5)
    monkeypatch.setattr(ib, "_ENDS_S", 0.1)
    [test] = between([str(stand_in(tmp_path, "ib_write_bw", "", first="exec sleep 600"))], {PORT: 400.0}, {PORT: 400.0})
    assert (test.gbps, test.is_broken) == (None, False)
    assert "did not end within" in test.said


def test_node_without_the_program_tells_the_other_one() -> None:
    one, other = socket.socketpair()
    Line(other, 5).send(cannot="ib_write_bw is not on this node")
    with pytest.raises(CannotRunError, match="gpu-1: ib_write_bw is not on this node"):
        ib.write(Line(one, 5), "gpu-1", [], {}, 1)


def test_tasks_of_one_step_meet_and_others_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[Line] = []
    ports = meeting.ports_of("7.0")

    def same(token: str) -> list[int]:
        return ports

    monkeypatch.setattr(meeting, "ports_of", same)
    waits = threading.Thread(target=lambda: met.append(meeting.wait_for_other("7.0", 5, 20 * patience())))
    waits.start()
    with pytest.raises(OSError, match=r"127\.0\.0\.1 did not answer within 2 s"):
        meeting.go_to_other("127.0.0.1", "8.0", 5, 2)
    line = meeting.go_to_other("127.0.0.1", "7.0", 5, 20 * patience())
    waits.join(20 * patience())
    line.send(a=1)
    assert met[0].receive() == {"a": 1}
    met[0].close()
    with pytest.raises(OSError, match="the other node has ended"):
        line.receive()


def test_taken_ports_are_passed_over() -> None:
    with meeting.listen(meeting.ports_of("9.0")[0]):
        waits = threading.Thread(target=lambda: meeting.wait_for_other("9.0", 5, 20 * patience()).close())
        waits.start()
        meeting.go_to_other("127.0.0.1", "9.0", 2, 20 * patience()).close()
        waits.join(20 * patience())
    assert not waits.is_alive()


def test_nobody_comes() -> None:
    with pytest.raises(OSError, match=r"nobody came|timed out"):
        meeting.wait_for_other("10.0", 1, 0.2)


def test_tasks_meet_beside_strangers_who_hold_and_drip() -> None:
    """One that is silent, and one that says a byte now and then, would each have had a second of the half minute again and again."""
    met: list[Line] = []
    waits = threading.Thread(target=lambda: met.append(meeting.wait_for_other("11.0", 5, 20 * patience())))
    waits.start()
    [first, *_] = meeting.ports_of("11.0")
    strangers = [until_it_listens(first) for _ in range(100)]
    for stranger in strangers[50:]:
        with contextlib.suppress(ConnectionError):
            stranger.sendall(b"{")
    line = meeting.go_to_other("127.0.0.1", "11.0", 5, 20 * patience())
    waits.join(20 * patience())
    line.send(a=1)
    assert met[0].receive() == {"a": 1}
    for each in (*strangers, line, *met):
        each.close()


def test_line_that_drips_is_given_up() -> None:
    here, there = socket.socketpair()
    line = Line(here, 0.3)
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.05):
            there.sendall(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(OSError, match="timed out"):
        line.receive()
    stop.set()
    thread.join()
    line.close()
    there.close()


def until_it_listens(port: int) -> socket.socket:
    end = time.monotonic() + 10 * patience()
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 5)
        except ConnectionRefusedError:
            assert time.monotonic() < end


BOTH = {**LIMITS, "ranks": 2, "nodes": ["localhost", "node-1"]}


def ranks(folder: Path, token: str) -> dict[str, Any]:
    """Both tasks as Slurm starts them; rank 1 is on localhost."""
    step: dict[str, Any] = {meeting.MEETING: token}
    rank_1 = threading.Thread(
        target=run_check, args=("ib", BOTH, folder), kwargs={"SLURM_PROCID": "1", "SLURMD_NODENAME": "localhost", **step}
    )
    rank_1.start()
    done = run_check("ib", BOTH, folder, SLURM_PROCID="0", SLURMD_NODENAME="node-1", **step)
    rank_1.join(90 * patience())
    return answer(done)


def test_tasks_without_a_port_that_both_have_are_unknown(tmp_path: Path) -> None:
    installed(tmp_path)
    if Path("/sys/class/infiniband").exists():
        pytest.skip("this machine has cards of its own")
    assert ranks(tmp_path, "8d1f") == {"result": "unknown", "found": "no active InfiniBand or RoCE port that both nodes have"}


def test_missing_program_is_unknown_and_says_what_to_install(tmp_path: Path) -> None:
    settings = {**BOTH, "command": ["/nowhere/ib_write_bw"]}
    done = run_check("ib", settings, tmp_path, SLURM_PROCID="0", SLURMD_NODENAME="node-1", SLIPWAY_MEETING="8d1f")
    assert read_outcome(done.returncode, done.stdout, done.stderr, 60) == Outcome(
        UNKNOWN, "/nowhere/ib_write_bw is not on this node: install perftest where the worker finds it (docs/reference/checks.md)"
    )
