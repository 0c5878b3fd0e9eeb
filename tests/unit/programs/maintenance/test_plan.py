"""Who is warned and who is requeued, as tables; and the promises for any jobs, windows and kills."""

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs.maintenance.plan import Actions, are_near, plan_maintenance
from programs.maintenance.run import carry_out, one_round
from slurm.commands import SlurmError
from slurm.job_marks import with_warning
from slurm.maintenance import ANNOUNCED, Job, Policy, Window, is_requeued, meets

START = 100_000
WINDOW = Window("weekly", START, START + 3600, frozenset({"gpu-0", "gpu-1"}))
POLICY = Policy()
DECLARED = "[slipway: requeue]"
WARNED = f"[slipway: requeue; warned weekly@{START}]"
JOB = Job("12", frozenset({"gpu-0"}), None, admin_comment=DECLARED)
HOUR_BEFORE, MINUTE_BEFORE = START - 3600, START - 60


def kind(actions: Actions) -> str:
    return "requeue" if actions.requeue else "warn" if actions.words else "nothing"


@pytest.mark.parametrize(
    ("job", "now", "expected"),
    [
        pytest.param(JOB, HOUR_BEFORE - 1, "nothing", id="too early"),
        pytest.param(JOB, HOUR_BEFORE, "warn", id="at the lead time"),
        pytest.param(replace(JOB, ends_at=START), HOUR_BEFORE, "nothing", id="ends before"),
        pytest.param(replace(JOB, ends_at=START + 1), HOUR_BEFORE, "warn", id="ends within"),
        pytest.param(replace(JOB, nodes=frozenset({"gpu-2"})), HOUR_BEFORE, "nothing", id="on other nodes"),
        pytest.param(replace(JOB, reservation="weekly"), HOUR_BEFORE, "nothing", id="of the maintenance itself"),
        pytest.param(replace(JOB, admin_comment=WARNED), MINUTE_BEFORE - 1, "nothing", id="warned before"),
        pytest.param(replace(JOB, admin_comment=WARNED), MINUTE_BEFORE, "requeue", id="at the deadline"),
        pytest.param(replace(JOB, admin_comment=WARNED), START + 30, "requeue", id="late"),
        pytest.param(replace(JOB, admin_comment=WARNED), START + 3600, "nothing", id="after the end"),
        pytest.param(JOB, MINUTE_BEFORE, "warn", id="nobody is requeued without a warning"),
        pytest.param(JOB, START, "nothing", id="a window that starts at once"),
        pytest.param(
            replace(JOB, admin_comment="[slipway: requeue; warned weekly@99]"), MINUTE_BEFORE, "warn", id="warned of another time of it"
        ),
        pytest.param(replace(JOB, admin_comment=WARNED.replace("requeue; ", "")), MINUTE_BEFORE, "nothing", id="did not declare it"),
    ],
)
def test_job_is_warned_then_requeued(job: Job, now: int, expected: str) -> None:
    assert kind(plan_maintenance([job], [WINDOW], now, POLICY)) == expected


@pytest.mark.parametrize(
    ("job", "policy", "expected"),
    [
        pytest.param(JOB, POLICY, True, id="--requeue"),
        pytest.param(replace(JOB, admin_comment="(null)"), POLICY, False, id="Slurm's default"),
        pytest.param(replace(JOB, admin_comment="(null)", comment="a,requeue-for-maintenance"), POLICY, True, id="word"),
        pytest.param(replace(JOB, admin_comment="(null)", comment="no-requeue-for-maintenance"), POLICY, False, id="part of a word"),
        pytest.param(replace(JOB, may_requeue=False), POLICY, False, id="--no-requeue"),
        pytest.param(replace(JOB, is_batch=False), POLICY, False, id="srun"),
        pytest.param(replace(JOB, admin_comment=""), Policy(requeue="Allowed"), True, id="allowed by default"),
        pytest.param(replace(JOB, may_requeue=False), Policy(requeue="Allowed"), False, id="not allowed"),
        pytest.param(JOB, Policy(requeue="Never"), False, id="never"),
    ],
)
def test_only_declared_jobs_are_requeued(job: Job, policy: Policy, expected: bool) -> None:
    assert is_requeued(job, policy) is expected


@pytest.mark.parametrize("gap_s", [0, 60], ids=["at once", "one after the other"])
def test_job_on_many_announced_machines_is_warned_of_each_time_once(gap_s: int) -> None:
    """Each Slurm node has a reservation of its own for that."""
    names = [f"gpu-{number}" for number in range(8)]
    windows = [Window(f"{ANNOUNCED}{name}", START + at * gap_s, START + 9000, frozenset({name})) for at, name in enumerate(names)]
    job = replace(JOB, nodes=frozenset(names))
    first = plan_maintenance([job], windows, HOUR_BEFORE + 600, POLICY)
    [comment] = first.notes
    assert comment.count("warned") == (8 if gap_s else 1)
    assert "gpu-[0-7]" in first.words["12"] if not gap_s else "gpu-0" in first.words["12"]
    assert plan_maintenance([replace(job, admin_comment=comment)], windows, HOUR_BEFORE + 615, POLICY) == Actions()


def test_marks_of_windows_that_a_job_meets_outlast_others() -> None:
    comment = with_warning("[slipway: warned met@1]", [f"other@{number}" for number in range(7)])
    assert "met@1" in with_warning(comment, ["new@1", "new@2"], {"met@1"})
    assert "met@1" not in with_warning(comment, ["new@1", "new@2"])


def test_words_say_when_and_what_then() -> None:
    actions = plan_maintenance([JOB, replace(JOB, id="13", admin_comment="(null)")], [WINDOW], HOUR_BEFORE, POLICY)
    about = "Maintenance weekly of gpu-0 starts at 1970-01-02 03:46:40 UTC."
    assert actions.words == {
        "12": f"{about} This job is requeued at 1970-01-02 03:45:40 UTC and starts again on other nodes or later.",
        "13": f"{about} This job may still run then, and is not requeued by itself. Save its work.",
    }
    assert actions.notes == {WARNED: ("12",), WARNED.replace("requeue; ", ""): ("13",)}


class KilledError(BaseException):
    """The program is gone in the middle of a write."""


@dataclass
class FakeSlurm:
    """Keeps what it is told; the write of that number is the last one."""

    listed: dict[str, Job]
    reserved: list[Window]
    dies_at: int = -1
    refuses: frozenset[str] = frozenset()
    writes: int = 0
    warned: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    signalled: list[str] = field(default_factory=list[str])
    requeued: list[str] = field(default_factory=list[str])

    def windows(self, prefix: str) -> tuple[Window, ...]:
        assert prefix == ""
        return tuple(self.reserved)

    def jobs(self) -> tuple[Job, ...]:
        return tuple(self.listed.values())

    def _write(self) -> None:
        self.writes += 1
        if self.writes - 1 == self.dies_at:
            raise KilledError

    def requeue(self, jobs: tuple[str, ...]) -> None:
        self._write()
        for job in jobs:
            self.requeued.append(job)
            del self.listed[job]

    def note(self, jobs: tuple[str, ...], comment: str) -> None:
        self._write()
        for job in jobs:
            if job not in self.refuses:
                self.listed[job] = replace(self.listed[job], admin_comment=comment)
        if self.refuses & set(jobs):
            raise SlurmError("Invalid job id specified")

    def signal(self, jobs: list[str], name: str) -> None:
        assert name == "URG"
        self._write()
        self.signalled += jobs

    def notify(self, words: dict[str, str]) -> None:
        self._write()
        self.warned += [*words.items()]


def run_round(slurm: FakeSlurm, now: float) -> None:
    one_round(slurm, POLICY, lambda _: None, lambda: now)  # type: ignore[arg-type]


_NODES = st.frozensets(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), min_size=1)
_ENDS = st.none() | st.integers(START - 4000, START + 4000)
_COMMENTS = st.sampled_from(["(null)", "", DECLARED, "did not start on gpu-1: check gpu: 3 GPUs", f"did not start {DECLARED}"])
_JOBS = st.lists(st.builds(Job, st.just(""), _NODES, _ENDS, is_batch=st.booleans(), may_requeue=st.booleans(), admin_comment=_COMMENTS))


@settings(max_examples=200)
@given(_JOBS, st.lists(st.tuples(st.integers(0, 4000), st.integers(-1, 4)), max_size=12), st.booleans())
def test_no_job_is_warned_twice_or_requeued_undeclared_whenever_killed(
    jobs: list[Job], rounds: list[tuple[int, int]], is_deleted: bool
) -> None:
    listed = {str(number): replace(job, id=str(number)) for number, job in enumerate(jobs)}
    slurm, before = FakeSlurm(dict(listed), [WINDOW]), dict(listed)
    for at, dies_at in sorted(rounds):
        slurm.dies_at, slurm.writes = dies_at, 0
        try:
            run_round(slurm, START - 4000 + at)
        except KilledError:
            continue
    told = [job for job, _ in slurm.warned]
    assert len(told) == len(set(told))
    assert len(slurm.signalled) == len(set(slurm.signalled))
    assert all(meets(before[job], WINDOW) for job in told)
    assert all(is_requeued(before[job], POLICY) and meets(before[job], WINDOW) for job in slurm.requeued)
    if is_deleted:
        slurm.reserved, slurm.requeued = [], []
        run_round(slurm, MINUTE_BEFORE)
        assert slurm.requeued == []
    else:
        slurm.dies_at = -1
        for now in (MINUTE_BEFORE - 15, MINUTE_BEFORE):
            run_round(slurm, now)
        assert not [job for job in slurm.listed.values() if meets(job, WINDOW) and is_requeued(job, POLICY)]
    others = {job.id: job.admin_comment for job in slurm.listed.values()}
    assert all("did not start" in others[job] for job in others if "did not start" in before[job].admin_comment)


def test_job_whose_note_slurm_refuses_holds_up_no_other_and_is_not_warned() -> None:
    jobs = {each: replace(JOB, id=each) for each in ("12", "13", "14")}
    slurm = FakeSlurm(jobs, [WINDOW], refuses=frozenset({"13"}))
    run_round(slurm, HOUR_BEFORE)
    assert slurm.signalled == ["12", "14"]
    assert [job for job, _ in slurm.warned] == ["12", "14"]


def test_list_that_took_long_decides_nothing() -> None:
    slurm, times = FakeSlurm({"12": replace(JOB, admin_comment=WARNED)}, [WINDOW]), iter([MINUTE_BEFORE, MINUTE_BEFORE + 11])
    with pytest.raises(SlurmError, match="more than 10 s"):
        one_round(slurm, POLICY, lambda _: None, lambda: next(times))  # type: ignore[arg-type]
    assert slurm.requeued == []


def test_jobs_are_not_read_while_no_window_is_near() -> None:
    assert not are_near([WINDOW], HOUR_BEFORE - 1, POLICY)
    assert are_near([WINDOW], HOUR_BEFORE, POLICY)
    assert not are_near([WINDOW], WINDOW.end, POLICY)


def test_no_signal_is_sent_without_one() -> None:
    slurm, said = FakeSlurm({"12": JOB}, [WINDOW]), list[str]()
    carry_out(slurm, plan_maintenance([JOB], [WINDOW], HOUR_BEFORE, POLICY), Policy(signal=""), said.append)  # type: ignore[arg-type]
    assert slurm.signalled == []
    assert [job for job, _ in slurm.warned] == ["12"]
    [told] = map(json.loads, said)
    assert (told["maintenance"], told["jobs"], told["job"]) == ("warn", ["12"], "12")
