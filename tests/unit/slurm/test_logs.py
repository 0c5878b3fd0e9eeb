"""A line of a log: its keys and their order, and that nothing makes it more than one line, or too long."""

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from names import variables
from slurm import logs
from slurm.job_names import find_job

AT = 1795573443.25


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variables.CLUSTER, "dev")
    monkeypatch.setenv(logs.NODE, "gpu-1")


def test_keys_are_these_in_this_order() -> None:
    made = logs.line("slurmd", "[12.batch] killed", logs.ERROR, AT, user="ada")
    assert made == (
        '{"time": "2026-11-25T02:24:03.250Z", "level": "error", "cluster": "dev", "node": "gpu-1", "daemon": "slurmd", "job": "12",'
        ' "step": "batch", "user": "ada", "message": "[12.batch] killed"}'
    )


TERMINAL = (0x1B, 0x7F, 0x85, 0x9B, 0x2028, 0x202E, 0xE0001)


@pytest.mark.parametrize("character", [pytest.param(chr(code), id=f"U+{code:04X}") for code in TERMINAL])
def test_no_character_that_a_terminal_obeys_stands_raw_in_a_line(character: str) -> None:
    said = logs.line("worker", f"a{character}31m", name=f"{character}x")
    assert character not in said
    assert json.loads(said)["message"] == f"a{character}31m"


def test_line_without_a_job_has_neither_job_nor_step() -> None:
    assert list(json.loads(logs.line("slurmd", "slurmd version 26.05.5 started"))) == [
        *("time", "level", "cluster", "node", "daemon", "message"),
    ]


def test_host_is_the_node_outside_of_slurmd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(logs.NODE)
    assert json.loads(logs.line("mail", "sent"))["node"] == os.uname().nodename


def test_what_is_known_wins_over_what_the_message_names() -> None:
    told = json.loads(logs.line("check", "JobId=3 was here", node="gpu-7", job="4"))
    assert (told["node"], told["job"], "step" in told) == ("gpu-7", "4", False)


@given(st.text(), st.text(max_size=20), st.dictionaries(st.text(max_size=9), st.one_of(st.text(), st.integers(), st.none(), st.binary())))
def test_any_words_are_one_line_of_json(message: str, daemon: str, more: dict[str, Any]) -> None:
    made = logs.line(daemon, message, **more)
    assert "\n" not in made
    assert json.loads(made.encode("utf-8", "replace"))["daemon"] == daemon.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("x" * 100_000, id="letters"),
        pytest.param("\x00" * 100_000, id="each-byte-becomes-six"),
        pytest.param("é" * 9_000, id="each-letter-is-two-bytes"),
    ],
)
def test_line_fits_into_one_of_the_container_runtimes(message: str) -> None:
    made = logs.line("slurmd", message)
    told = json.loads(made)
    assert len(made.encode()) <= logs.LONGEST
    assert told["message"].startswith(message[:1000])
    assert told["message"].endswith(" more characters]")


def test_large_key_goes_and_the_message_stays() -> None:
    told = json.loads(logs.line("check", "check nccl passed", found="x" * 50_000, result="passed"))
    assert (told["message"], told["result"], "found" in told) == ("check nccl passed", "passed", False)


@pytest.mark.parametrize("at", [float("inf"), float("nan"), -1e30, 1e30], ids=str)
def test_time_that_is_none_costs_no_line(at: float) -> None:
    assert json.loads(logs.line("slurmd", "x", logs.INFO, at))["message"] == "x"


def test_words_of_our_programs_have_levels(capfd: pytest.CaptureFixture[str]) -> None:
    say = logs.teller("root-fill")
    say("FAILED: no space")
    say("version 1 is filled")
    say("slow", logs.WARNING)
    assert [json.loads(line)["level"] for line in capfd.readouterr().out.splitlines()] == ["error", "info", "warning"]


def test_reader_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    monkeypatch.setattr(logs, "_STDOUT", writes)
    logs.write("lost")
    os.close(writes)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(logs.line("worker", "slurmd ended"), "worker: slurmd ended", id="ours"),
        pytest.param("plain words", "plain words", id="plain"),
        pytest.param('{"time": 1', '{"time": 1', id="broken"),
        pytest.param('{"time": 1}', '{"time": 1}', id="without-a-message"),
        pytest.param('{"check": "disk"}', '{"check": "disk"}', id="somebody-elses-json"),
    ],
)
def test_lines_are_shown_to_people_as_words(text: str, shown: str) -> None:
    assert logs.readable(text) == shown


@pytest.mark.parametrize(
    ("text", "job"),
    [
        pytest.param("sched: Allocate JobId=12 NodeList=gpu-0 #CPUs=1 Partition=main", ("12", ""), id="job"),
        pytest.param("sched: Allocate JobId=12_3(15) NodeList=gpu-0", ("12_3", ""), id="task-of-an-array"),
        pytest.param("_slurm_rpc_submit_batch_job: JobId=12+1(13) InitPrio=1", ("12+1", ""), id="component-of-a-het-job"),
        pytest.param("JobId=12_* is held", ("12", ""), id="array"),
        pytest.param("launch task StepId=4.0 request from UID:10001 GID:10001 HOST:198.18.130.4 PORT:39482", ("4", "0"), id="step"),
        pytest.param("StepId=12_3.batch", ("12_3", "batch"), id="batch-step-of-a-task"),
        pytest.param("StepId=12+1.0", ("12+1", "0"), id="step-of-a-component"),
        pytest.param("[12.0] done with step", ("12", "0"), id="slurmstepd"),
        pytest.param("[12.batch] sending REQUEST_COMPLETE_BATCH_SCRIPT", ("12", "batch"), id="slurmstepd-batch"),
        pytest.param("[12_3.extern] done", ("12_3", "extern"), id="slurmstepd-extern"),
        pytest.param("*** STEP 7.0 ON cpu-0 CANCELLED AT 2026-01-02T03:04:05 DUE TO PREEMPTION ***", ("7", "0"), id="step-of-srun"),
        pytest.param("*** JOB 7 ON cpu-0 CANCELLED AT 2026-01-02T03:04:05 ***", ("7", ""), id="cancelled"),
        pytest.param("_lllp_generate_cpu_bind jobid [4]: mask_cpu,one_thread, 0x1", ("4", ""), id="jobid-in-brackets"),
        pytest.param("error: Batch completion for job 12 sent from wrong node", ("12", ""), id="word"),
        pytest.param("JobId=4294967294 and JobId=9", ("9", ""), id="mark-for-none"),
        pytest.param("JobId=0", ("", ""), id="no-job"),
        pytest.param("Recovered information about 0 jobs", ("", ""), id="count"),
        pytest.param("10 jobs 12 steps", ("", ""), id="numbers-beside"),
        pytest.param("slurmctld version 26.05.5 started on cluster dev(0)", ("", ""), id="version"),
        pytest.param("[198.18.129.9:6820(fd:9)] GET /slurm/v0.0.45/jobs/", ("", ""), id="address"),
    ],
)
def test_job_is_found_in_every_form(text: str, job: tuple[str, str]) -> None:
    assert find_job(text) == job
