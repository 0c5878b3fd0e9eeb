"""The preview of maintenance: what is wrong with its options, what becomes of each job, and how it reads the cluster."""

import pytest

from cli.maintenance import Wish, as_json, check, judge, lines, read_live_policy
from components.control_plane import build_slurmctld
from engine.faults import SlipwayError
from slurm.maintenance import Job, Policy, Window
from tests.support.components.examples import CLUSTER, PODS, edited_example

NOW = 1_795_540_000  # 2026-11-24 17:06:40
START = 1_795_543_600
WINDOW = Window("", START, 0, frozenset({"gpu-0", "gpu-1"}))
JOBS = [
    Job("10", frozenset({"gpu-0"}), START - 60, "alice", "ml"),
    Job("11", frozenset({"gpu-0", "gpu-2"}), None, "bob", "", admin_comment="[slipway: requeue]"),
    Job("12_3", frozenset({"gpu-1"}), START + 60, "alice", "ml"),
    Job("13", frozenset({"gpu-2"}), None, "bob"),
]


@pytest.mark.parametrize(
    ("wish", "faults"),
    [
        pytest.param(Wish(nodes="gpu-[0-1]", start="2026-12-01T10:00"), 0, id="fine"),
        pytest.param(Wish(nodes="gpu-0", start="2026-12-01T10:00+01:00"), 0, id="with an offset"),
        pytest.param(Wish(reservation="weekly"), 0, id="a reservation"),
        pytest.param(Wish(), 2, id="nothing"),
        pytest.param(Wish("weekly", "gpu-0", "2026-12-01"), 2, id="both"),
        pytest.param(Wish(nodes="gpu-[3-1]", start="tomorrow", minutes=0), 3, id="all wrong"),
        pytest.param(Wish(nodes="gpu-0", start="2020-01-01T00:00"), 1, id="passed"),
    ],
)
def test_all_mistakes_are_told_at_once(wish: Wish, faults: int) -> None:
    if not faults:
        check(wish, NOW)
        return
    with pytest.raises(SlipwayError) as error:
        check(wish, NOW)
    assert len(str(error.value).splitlines()) == faults


def test_preview_tells_each_jobs_fate_and_the_command() -> None:
    assert lines(judge(JOBS, WINDOW, Policy(), Wish(nodes="gpu-[0-1]", minutes=120)), NOW) == [
        "Maintenance of gpu-[0-1] at 2026-11-24 18:06:40 UTC, in 1 h 0 min: 3 jobs: 1 requeued, 1 left alone, 1 end before.",
        "",
        "JOB   USER   ACCOUNT  NODES  ENDS BY                  WHAT BECOMES OF IT",
        "12_3  alice  ml       gpu-1  2026-11-24 18:07:40 UTC  warned, left alone: may still run then",
        "11    bob    -        gpu-0  no limit                 warned, requeued at 2026-11-24 18:05:40 UTC",
        "10    alice  ml       gpu-0  2026-11-24 18:05:40 UTC  ends before",
        "",
        "Nothing was changed. As an administrator, this reserves the nodes:",
        "    scontrol create reservation ReservationName=maintenance Nodes=gpu-[0-1] Users=root StartTime=2026-11-24T18:06:40 Duration=120 "
        "Flags=MAINT,IGNORE_JOBS",
    ]


def test_cluster_that_warns_nobody_says_so() -> None:
    said = lines(judge(JOBS, WINDOW, None, Wish(reservation="weekly")), NOW)
    assert "2 left alone" in said[0]
    assert said[-1] == "maintenance.enabled is false in this cluster: no job is warned or requeued."


def test_program_reads_the_same_as_json() -> None:
    found = as_json(judge(JOBS, WINDOW, Policy(), Wish(nodes="gpu-[0-1]")))
    assert [(job["id"], job["fate"], job["endsAt"]) for job in found["jobs"]] == [
        ("12_3", "runs on", START + 60),
        ("11", "requeued", None),
        ("10", "ends before", START - 60),
    ]
    assert (found["start"], found["nodes"], found["warns"]) == (START, ["gpu-0", "gpu-1"], True)


def test_policy_is_read_from_what_slurmctlds_pod_runs() -> None:
    warning = edited_example({"maintenance": {"warnBeforeS": 7200, "requeue": "Allowed"}})
    assert read_live_policy([build_slurmctld(warning, PODS)]) == Policy(warn_before_s=7200, requeue="Allowed")
    assert read_live_policy([build_slurmctld(CLUSTER, PODS)]) is None
