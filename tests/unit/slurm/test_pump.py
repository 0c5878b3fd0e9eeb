"""The pump between real programs and a log: each line becomes one, no line is lost, and signals and exit codes pass through."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from names import variables
from slurm import logs
from slurm.pump import LONGEST, Lines, Pump, make_line
from tests.support.patience import patience

PROJECT = Path(__file__).parents[3]
PUMP = [sys.executable, "-EsB", "-m", "slurm.pump"]
TIMEOUT_S = 60


def pump(*command: str, daemon: str = "slurmd", stdin: int | None = None) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*PUMP, daemon, "--", *command], cwd=PROJECT, stdin=stdin, stdout=subprocess.PIPE)


def said(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def messages(data: bytes) -> list[str]:
    return [line["message"] for line in said(data)]


@given(st.lists(st.binary(max_size=60)), st.lists(st.integers(1, 20)))
def test_any_bytes_make_one_line_each(parts: list[bytes], cuts: list[int]) -> None:
    """However they come: whole or in pieces."""
    written, lines, made = b"\n".join(parts), Lines("slurmd"), list[str]()
    expected = [part for part in written.split(b"\n") if part.decode("utf-8", "replace").strip()]
    for size in cuts:
        made += lines.add(written[:size])
        written = written[size:]
    made += [*lines.add(written), *lines.end()]
    assert len(made) == len(expected)
    assert all(json.loads(each.encode("utf-8", "replace"))["daemon"] == "slurmd" and "\n" not in each for each in made)


@settings(deadline=None)
@given(st.integers(LONGEST - 2, LONGEST * 3))
def test_endless_line_is_kept_up_to_a_limit(size: int) -> None:
    lines = Lines("slurmd")
    made = [each for start in range(0, size, 50_000) for each in lines.add(b"x" * min(50_000, size - start))]
    made += lines.add(b"\nnext\n")
    assert [len(each) <= logs.LONGEST for each in made] == [True, True]
    assert json.loads(made[1])["message"] == "next"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("exit 0", 0, id="ends-well"),
        pytest.param("exit 7", 7, id="own-code"),
        pytest.param("kill -KILL $$", 137, id="killed"),
        pytest.param("kill -SEGV $$", 139, id="crashed"),
    ],
)
def test_exit_code_passes_through_and_the_last_words_are_not_lost(script: str, code: int) -> None:
    with pump("sh", "-c", f"echo out; echo err >&2; printf last; {script}") as process:
        assert messages(process.communicate(timeout=TIMEOUT_S * patience())[0]) == ["out", "err", "last"]
        assert process.returncode == code


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2], ids=lambda each: each.name
)
def test_signal_reaches_the_daemon(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 5' {name}; echo ready; while :; do sleep 0.05; done"
    with pump("sh", "-c", script) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["message"] == "ready"
        process.send_signal(number)
        assert messages(process.communicate(timeout=TIMEOUT_S * patience())[0]) == [f"got {name}"]
        assert process.returncode == 5


def test_line_comes_at_once() -> None:
    with pump("sh", "-c", "echo first; read line; echo $line", stdin=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert json.loads(process.stdout.readline())["message"] == "first"  # before the program ends
        process.stdin.write(b"second\n")
        process.stdin.close()
        assert messages(process.stdout.read()) == ["second"]


def test_child_that_lives_on_does_not_hold_up_the_end() -> None:
    with pump("sh", "-c", "sleep 1000 & echo $!; exit 3") as process:
        assert process.stdout
        child = int(json.loads(process.stdout.readline())["message"])
        try:
            assert process.wait(TIMEOUT_S * patience()) == 3
        finally:
            os.kill(child, signal.SIGKILL)


def test_daemon_runs_on_when_nobody_reads_its_log(tmp_path: Path) -> None:
    count = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"
    with pump("sh", "-c", f"echo ready; read word; {count}; touch {tmp_path}/done; exit 4", stdin=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.wait(TIMEOUT_S * patience()) == 4
    assert (tmp_path / "done").exists()


def test_daemon_that_closes_its_output_runs_on() -> None:
    with pump("sh", "-c", "echo one; exec >&- 2>&-; sleep 0.2; exit 6") as process:
        assert messages(process.communicate(timeout=TIMEOUT_S * patience())[0]) == ["one"]
        assert process.returncode == 6


def test_sigpipe_is_the_daemons_own_again() -> None:
    with pump("sh", "-c", "grep SigIgn /proc/self/status") as process:
        [line] = messages(process.communicate(timeout=TIMEOUT_S * patience())[0])
    assert not int(line.split()[-1], 16) & 1 << signal.SIGPIPE - 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(["slurmd", "--", "/no/such"], 127, "FAILED: /no/such cannot be started: No such file or directory", id="no-program"),
        pytest.param(["slurmd"], 2, "FAILED: python3 -m slurm.pump DAEMON -- COMMAND...", id="no-command"),
    ],
)
def test_what_cannot_run_is_said(words: list[str], code: int, message: str) -> None:
    done = subprocess.run([*PUMP, *words], cwd=PROJECT, capture_output=True, timeout=TIMEOUT_S * patience(), check=False)
    assert (done.returncode, messages(done.stdout)) == (code, [message])


def test_line_of_a_program_of_ours_stays_as_it_is() -> None:
    line = logs.line("database", "waiting", logs.WARNING, 1.5)
    with pump("echo", line, daemon="slurmdbd") as process:
        assert process.communicate(timeout=TIMEOUT_S * patience())[0].decode() == f"{line}\n"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a pump in this process writes."""
    lines = list[str]()
    monkeypatch.setattr(logs, "write", lambda text: lines.extend(text.split("\n")))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType,reportUnknownMemberType]
    return lines


def test_pump_in_a_thread_serves_each_daemon_start_and_loses_no_last_line(written: list[str]) -> None:
    log = Pump("slurmd")
    for words in ("one", "two"):
        subprocess.run(["sh", "-c", f"echo {words}; printf end-of-{words}"], stdout=log.fd, stderr=log.fd, check=True)
    log.close()
    assert [json.loads(line)["message"] for line in written] == ["one", "end-of-onetwo", "end-of-two"]


def test_pump_in_a_thread_ends_although_a_step_holds_its_pipe(written: list[str]) -> None:
    log = Pump("slurmd")
    step = subprocess.Popen(["sh", "-c", "echo step; exec sleep 1000"], stdout=log.fd, stderr=log.fd)
    try:
        closing = threading.Thread(target=log.close)
        closing.start()
        closing.join(TIMEOUT_S * patience())
        assert not closing.is_alive()
    finally:
        step.kill()
        step.wait()


def test_traceback_of_a_program_is_in_its_log() -> None:
    script = "from slurm.pump import take_stderr; take_stderr('worker'); raise ZeroDivisionError('why')"
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, timeout=TIMEOUT_S * patience(), check=False)
    lines = said(done.stdout)
    assert (done.returncode, done.stderr) == (1, b"")
    assert (lines[0]["level"], lines[-1]["level"], lines[-1]["message"]) == ("error", "error", "ZeroDivisionError: why")


@pytest.mark.parametrize(
    ("daemon", "cluster", "size", "stays"),
    [
        pytest.param("database", "dev", 1, True, id="of-a-program-beside-it"),
        pytest.param("database", "prod", 1, False, id="of-another-cluster"),
        pytest.param("database", "dev", logs.LONGEST, False, id="longer-than-a-line-may-be"),
        pytest.param("slurmctld", "dev", 1, False, id="quoted-by-slurmctld"),
    ],
)
def test_line_that_looks_like_ours_stays_only_where_it_can_be(
    daemon: str, cluster: str, size: int, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm quotes what users write, with their newlines."""
    monkeypatch.setenv(variables.CLUSTER, "dev")
    text = json.dumps({"time": "2027-01-15T08:00:00.000Z", "cluster": cluster, "node": "gpu-1", "message": "x" * size})
    made = make_line(daemon, text.encode())
    assert (made == text) == stays
    assert len(made.encode()) <= logs.LONGEST


def test_who_hears_a_log_gets_each_line_once_as_the_daemon_wrote_it() -> None:
    heard: list[str] = []
    lines = Lines("slurmd", heard.append)
    made = [*lines.add(b"[2026-11-26T17:03:50.1] error: slurmstepd return "), *lines.add(b"code -1\nsecond\nla"), *lines.end()]
    assert heard == ["[2026-11-26T17:03:50.1] error: slurmstepd return code -1", "second", "la"]
    assert len(made) == 3
