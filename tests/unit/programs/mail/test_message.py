"""What a mail says about a job, from slurmctld's variables; and what texts of users can do to it: nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.mail.message import compose, job_number
from programs.mail.run import to_message

JOB = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_NAME": "train",
    "SLURM_JOB_USER": "alice",
    "SLURM_CLUSTER_NAME": "dev",
    "SLURM_JOB_WORK_DIR": "/home/alice/x",
    "SLURM_JOB_STDOUT": "out-%j-%x.txt",
    "SLURM_JOB_MAIL_TYPE": "Ended",
    "SLURM_JOB_STATE": "COMPLETED",
    "SLURM_JOB_EXIT_CODE2": "0:0",
}


def subject(**changes: str) -> str:
    return compose("Slurm says", "alice@example.com", JOB | changes).subject


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({}, "completed", id="completed"),
        pytest.param({"SLURM_JOB_MAIL_TYPE": "Began", "SLURM_JOB_STATE": "RUNNING"}, "started", id="began"),
        pytest.param(
            {"SLURM_JOB_MAIL_TYPE": "Failed", "SLURM_JOB_STATE": "FAILED", "SLURM_JOB_EXIT_CODE2": "3:0"}, "exit code 3", id="failed"
        ),
        pytest.param(
            {"SLURM_JOB_MAIL_TYPE": "Failed", "SLURM_JOB_STATE": "FAILED", "SLURM_JOB_EXIT_CODE2": "0:9"}, "signal 9", id="killed"
        ),
        pytest.param({"SLURM_JOB_MAIL_TYPE": "Failed", "SLURM_JOB_STATE": "OUT_OF_MEMORY"}, "needed more memory", id="memory"),
        pytest.param({"SLURM_JOB_MAIL_TYPE": "Failed", "SLURM_JOB_STATE": "NODE_FAIL"}, "a node went down", id="node"),
        pytest.param(
            {"SLURM_JOB_MAIL_TYPE": "Reached 80% of time limit", "SLURM_JOB_STATE": "RUNNING"}, "has used 80 %", id="share-of-time"
        ),
        pytest.param({"SLURM_JOB_MAIL_TYPE": "Requeued", "SLURM_JOB_STATE": "PENDING"}, "back into the queue", id="requeued"),
        pytest.param({"SLURM_JOB_MAIL_TYPE": "News of a later Slurm"}, "News of a later Slurm", id="unknown-kind"),
    ],
)
def test_subject_tells_what_happened(changes: dict[str, str], said: str) -> None:
    assert subject(**changes).startswith("[dev] Job 17 (train) ")
    assert said in subject(**changes)


def test_body_names_the_file_of_the_output_as_it_is_on_the_disk() -> None:
    assert "Output:        /home/alice/x/out-17-train.txt\n" in compose("", "alice@example.com", JOB).body


def test_task_of_an_array_has_the_number_that_its_user_knows() -> None:
    assert job_number({"SLURM_JOB_ID": "19", "SLURM_ARRAY_JOB_ID": "15", "SLURM_ARRAY_TASK_ID": "4"}) == "15_4"


@pytest.mark.parametrize(
    ("address", "to"),
    [
        pytest.param("alice@example.com", ("alice@example.com",), id="one"),
        pytest.param("alice@example.com, bob@example.com", ("alice@example.com", "bob@example.com"), id="two"),
        pytest.param("alice", (), id="no-domain"),
        pytest.param("alice@example.com\nBcc: eve@example.com", (), id="a-header"),
        pytest.param("-oX@", (), id="an-option"),
        pytest.param("-oX@b.c", (), id="an-option-with-a-domain"),
        pytest.param("a@-oX", (), id="a-domain-like-an-option"),
    ],
)
def test_only_addresses_get_mail(address: str, to: tuple[str, ...]) -> None:
    assert compose("", address, JOB).to == to


def test_slurms_own_subject_is_enough_where_there_is_no_job() -> None:
    mail = compose("Reservation began", "ops@example.com", {})
    assert (mail.subject, mail.body) == ("Reservation began", "Reservation began\n")


@given(st.dictionaries(st.sampled_from(sorted(JOB.keys() - {"SLURM_JOB_ID"})), st.text(max_size=80)), st.text(max_size=80))
def test_no_text_of_a_user_becomes_a_header_or_a_line_of_its_own(changes: dict[str, str], said: str) -> None:
    mail = compose(said, "alice@example.com", JOB | changes)
    message = to_message(mail, "slurm@example.com")
    assert message.keys()[:3] == ["From", "To", "Subject"]
    assert len(mail.subject.splitlines()) <= 1
    assert message["To"] == "alice@example.com"
    assert all(line == "" or line[0].isalnum() for line in mail.body.splitlines() if ":" in line[:15])
