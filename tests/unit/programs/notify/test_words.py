"""What messages say, and what texts of users can do in them: neither a mention, nor a link, nor a line of their own."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from names import variables
from programs.mail.message import compose
from programs.notify.nodes import Fault
from programs.notify.plan import Affected, Item, News
from programs.notify.words import LONGEST, plain_json, slack, write
from tests.unit.programs.notify.examples import ROW, run


def of_run(**changes: str) -> News:
    found = run(**changes)
    return News("jobEnd", Item(found, {found.state: found.tasks}, 0))


def slack_lines(news: News) -> list[str]:
    return json.loads(slack(write(news, "dev"), "dev"))["text"].splitlines()


@pytest.mark.parametrize(
    ("changes", "title", "advice"),
    [
        pytest.param({}, "Job 17 (train) completed", "", id="completed"),
        pytest.param({"State": "FAILED", "ExitCode": "3:0"}, "Job 17 (train) failed with exit code 3", "", id="failed"),
        pytest.param({"State": "OUT_OF_MEMORY"}, "needed more memory", "--mem", id="memory"),
        pytest.param({"State": "TIMEOUT"}, "time limit", "--time", id="timeout"),
        pytest.param({"State": "NODE_FAIL"}, "a node went down", "", id="node"),
        pytest.param({"State": "CANCELLED by 0", "NodeList": "None assigned"}, "was cancelled", "", id="cancelled"),
        pytest.param({"State": "REQUEUED"}, "put back into the queue", "by itself", id="requeued"),
        pytest.param({"State": "COMPLETED", "JobID": "15_[0-9]"}, "Array job 15 (train): 10 completed", "", id="array"),
    ],
)
def test_job_is_told_in_the_words_of_mails(changes: dict[str, str], title: str, advice: str) -> None:
    message = write(of_run(**changes), "dev")
    assert title in message.title
    assert advice in message.advice
    assert bool(message.advice) is bool(advice)


def test_slack_has_the_facts_line_by_line() -> None:
    lines = slack_lines(of_run())
    assert lines[0] == "*[dev] Job 17 (train) completed*"
    assert {"User: alice", "Account: ml", "Nodes: gpu-0", "Run time: 00:01:00", "Output: /home/alice/out-17.txt"} <= set(lines)


def test_json_has_the_facts_as_fields() -> None:
    said = json.loads(plain_json(write(of_run(), "dev"), "dev"))
    assert (said["event"], said["cluster"]) == ("jobEnd", "dev")
    assert {"job": "17", "name": "train", "exitCode": "0", "runTime": "00:01:00"}.items() <= said["facts"].items()


def test_rest_of_a_burst_is_counted_by_state() -> None:
    more = {"COMPLETED": 300, "OUT_OF_MEMORY": 20}
    assert slack_lines(News("jobEnd", more=more))[0] == "*[dev] And 320 more jobs: 300 completed, 20 out of memory*"


def test_node_is_told_with_cause_and_evidence() -> None:
    fault = Fault("slipway: check gpu: 3 of 4", "slurm", "drained", ("check disk failed: sda is full",))
    lines = slack_lines(News("nodeDrain", nodes=("gpu-1",), fault=fault))
    assert lines[0] == "*[dev] Node gpu-1 takes no jobs*"
    assert {"Cause: slipway: check gpu: 3 of 4", "Set by: slurm", "Evidence: check disk failed: sda is full"} <= set(lines)
    assert "2 nodes (gpu-[1-2])" in slack_lines(News("nodeResume", nodes=("gpu-1", "gpu-2"), fault=fault))[0]


ANY = st.text(max_size=300) | st.sampled_from(
    ["<!channel>", "@here", "<http://x|y>", "&lt;!here>", "http://evil.example", "a\nExit code: 0"]
)


@given(st.dictionaries(st.sampled_from(sorted(set(ROW) - {"JobID", "End", "State"})), ANY))
def test_no_text_of_a_user_is_a_mention_a_link_or_a_line(changes: dict[str, str]) -> None:
    news = of_run(**{key: text.replace("\x1f", "") for key, text in changes.items()})
    text = json.loads(slack(write(news, "dev"), "dev"))["text"]
    assert len(text) <= LONGEST
    assert not set("<>") & set(text)
    assert all(after.startswith("\u200b") for part in ("@", "://") for after in text.split(part)[1:])
    assert all(line.startswith("*[dev] Job 17") or line.partition(":")[0] in LABELS for line in text.splitlines())
    mail = compose("", "a@example.com", {variables.MAIL_TEXT: write(news, "dev").text})
    assert len(mail.body.splitlines()) == len(write(news, "dev").text.splitlines())


LABELS = {
    *("User", "Cluster", "Partition", "Account", "State", "Exit code", "Nodes", "Time in queue", "Run time", "Restarts", "Folder"),
    *("Output", "Errors", "The node could not open the output file"),
}


@given(ANY, ANY)
def test_reason_of_a_node_stays_in_its_line(reason: str, by: str) -> None:
    lines = slack_lines(News("nodeDrain", nodes=("gpu-1",), fault=Fault(reason, by, "drained")))
    assert all(line.startswith(("*[dev]", "Cluster:", "Cause:", "Set by:", "`kubectl")) for line in lines)


def affected(*reasons: str, jobs: int = 1, is_silent: bool = False) -> News:
    faults = {f"gpu-{at}": Fault(reason, "root", "draining") for at, reason in enumerate(reasons)}
    return News("jobDrain", affected=Affected("alice", tuple(str(10 + at) for at in range(jobs)), faults, is_silent))


@pytest.mark.parametrize(
    ("news", "title"),
    [
        pytest.param(affected("fan"), "Node gpu-0, on which your job 10 runs, was drained: fan; the job goes on for now", id="one"),
        pytest.param(affected(""), "Node gpu-0, on which your job 10 runs, was drained; the job goes on for now", id="no-reason"),
        pytest.param(
            affected("fan", "fan", jobs=12),
            "2 nodes (gpu-[0-1]), on which your 12 jobs run, were drained: fan; the jobs go on for now",
            id="several",
        ),
        pytest.param(
            affected("fan", is_silent=True), "Node gpu-0, on which your job 10 runs, was drained: fan; it does not answer", id="silent"
        ),
        pytest.param(News("jobDrain", more_users=3), "And jobs of 3 more users run on nodes that were drained", id="rest"),
    ],
)
def test_user_reads_which_jobs_are_on_a_drained_node(news: News, title: str) -> None:
    assert write(news, "dev").title == title


def test_drain_names_ten_jobs_and_each_cause() -> None:
    said = json.loads(plain_json(write(affected("fan", "disk", jobs=12), "dev"), "dev"))["facts"]
    assert said["jobs"] == "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, and 2 more"
    assert said["cause"] == "gpu-0: fan; gpu-1: disk"


@given(st.lists(st.text(max_size=300), min_size=1, max_size=40), st.integers(1, 2000))
def test_drain_says_what_becomes_of_the_jobs_however_long_its_reason(reasons: list[str], jobs: int) -> None:
    title = slack_lines(affected(*reasons, jobs=jobs))[0]
    assert title.endswith(("goes on for now*", "go on for now*"))
