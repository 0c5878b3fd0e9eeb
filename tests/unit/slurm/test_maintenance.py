"""What Slurm prints of reservations and jobs, as 26.05 gave it, and the marks in AdminComment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.job_marks import Marks, read_marks, window_mark, with_text, with_warning, write_marks
from slurm.maintenance import Policy, Window, fate, jobs_of, read_job_rows, read_windows
from slurm.squeue import ReadingError

LINE = (
    "ReservationName={name} StartTime=1795543524 EndTime=1795545324 Duration=00:30:00 Nodes={nodes} NodeCnt=1 CoreCnt=2 Features=(null) "
    "PartitionName=(null) Flags={flags} TRES=cpu=2 AllowedPartitions=(null) QOS=(null) Users=root Groups=(null) Accounts=(null) "
    "Licenses=(null) State=INACTIVE BurstBuffer=(null) MaxStartDelay=(null){comment}"
)


def line(name: str = "m1", nodes: str = "gpu-[0-1]", flags: str = "MAINT,IGNORE_JOBS,SPEC_NODES", comment: str = "") -> str:
    return LINE.format(name=name, nodes=nodes, flags=flags, comment=comment and f" Comment={comment}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(line(), 1, id="MAINT"),
        pytest.param(line(comment="new disks"), 1, id="with a comment"),
        pytest.param(f"{line(comment='two')}\nlines of it", 1, id="with a comment of two lines"),
        pytest.param(line(flags="SPEC_NODES"), 0, id="another reservation"),
        pytest.param(line(name="maint-7", flags="SPEC_NODES"), 1, id="by the prefix"),
        pytest.param(line(comment="slipway: check disk"), 0, id="of a health check"),
        pytest.param(line(nodes="(null)"), 0, id="without nodes"),
        pytest.param("No reservations in the system\n", 0, id="none"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_windows_are_reservations_for_maintenance(text: str, found: int) -> None:
    windows = read_windows(text, "maint-")
    assert len(windows) == found
    assert all((each.start, each.end, each.nodes) == (1795543524, 1795545324, {"gpu-0", "gpu-1"}) for each in windows)


def test_reservation_that_cannot_be_read_is_no_empty_list() -> None:
    with pytest.raises(ReadingError, match="reservation is not what"):
        read_windows("ReservationName=m1 StartTime=2026-11-24T18:05:24")


END = "\x1fbadcafe"


def row(*values: str) -> str:
    return "".join(f"{value}{END}" for value in values) + "\n"


def test_jobs_are_read_by_the_name_that_slurm_takes() -> None:
    rest = ("alice", "ml", "main", "1", "1", "(null)", "(null)", "(null)")
    rows = [
        row("10", "10", "N/A", "RUNNING", "gpu-0", "500", *rest),
        row("15", "14_1", "N/A", "RUNNING", "gpu-1", "NONE", *rest),
        row("12", "12+0", "12", "RUNNING", "gpu-0", "500", *rest),
        row("13", "12+1", "12", "RUNNING", "gpu-1", "600", *rest),
        row("16", "16", "N/A", "SUSPENDED", "gpu-1", "500", *rest),
    ]
    jobs = jobs_of(read_job_rows("".join(rows), END))
    assert [(job.id, sorted(job.nodes), job.ends_at) for job in jobs] == [
        ("10", ["gpu-0"], 500),
        ("14_1", ["gpu-1"], None),
        ("12", ["gpu-0", "gpu-1"], 600),
        ("16", ["gpu-1"], None),
    ]
    window = Window("m1", 550, 900, frozenset({"gpu-0", "gpu-1"}))
    assert [fate(job, window, Policy(requeue="Allowed")) for job in jobs] == ["ends before", "requeued", "requeued", "requeued"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(f"12{END}12{END}\n", "has not 14 fields", id="other fields"),
        pytest.param(row("10", "10", "N/A", "RUNNING", "gpu-0")[:-4], "is cut", id="cut"),
    ],
)
def test_answer_of_squeue_that_is_not_whole_is_refused(text: str, why: str) -> None:
    with pytest.raises(ReadingError, match=why):
        read_job_rows(text, END)


def test_comment_of_a_user_passes_for_no_other_job() -> None:
    """Slurm keeps line ends and separators in it (measured on 26.05)."""
    before, after = ("alice", "ml", "main", "1", "1", "(null)"), "(null)"
    forged = row("11", "11", "N/A", "RUNNING", "gpu-1", "NONE", "bob", *before[1:], "a", "[slipway: requeue]").replace(END, "\x1f")
    text = row("10", "10", "N/A", "RUNNING", "gpu-0", "500", *before, f"a\n{forged}", after)
    [job] = jobs_of(read_job_rows(text, END))
    assert (job.id, job.comment) == ("10", f"a\n{forged}".strip())


def test_rows_of_another_release_are_refused() -> None:
    with pytest.raises(ReadingError, match="a job has no HetJobID"):
        jobs_of([{"JobID": "10", "JobArrayID": "10"}])


@pytest.mark.parametrize(
    ("comment", "marks"),
    [
        pytest.param("(null)", Marks(), id="none"),
        pytest.param("from the budget [a]", Marks("from the budget [a]"), id="others' text"),
        pytest.param("[slipway: requeue]", Marks("", True), id="requeue"),
        pytest.param(
            "did not start on gpu-1: check gpu [slipway: requeue; warned m1@17]",
            Marks("did not start on gpu-1: check gpu", True, ("m1@17",)),
            id="all",
        ),
        pytest.param(
            "started again by Slipway [slipway: requeue; lent requeue; warned m1@17]",
            Marks("started again by Slipway", True, ("m1@17",), True),
            id="with a lent right",
        ),
    ],
)
def test_marks_are_read_and_written_alike(comment: str, marks: Marks) -> None:
    assert read_marks(comment) == marks
    assert write_marks(marks) in (comment, "")


@given(st.text(alphabet="abc []:;@%1", max_size=30), st.text(alphabet="ab ];:%@", min_size=1, max_size=12), st.integers(0, 2**31))
def test_warning_of_any_window_is_found_again_and_leaves_others_text(text: str, name: str, start: int) -> None:
    mark = window_mark(name, start)
    comment = with_warning(with_text("[slipway: requeue]", text), [mark])
    assert mark in read_marks(comment).warned
    assert read_marks(comment).asked_for_requeue
    assert read_marks(with_text(comment, "did not start")).warned == read_marks(comment).warned
    assert len(with_warning("x" * 5000, [mark])) < 1024
