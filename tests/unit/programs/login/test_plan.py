"""What a login node shows and limits."""

import pytest

from programs.login.plan import (
    Next,
    cgroup_files,
    group_folders,
    may_set_capabilities,
    plan_end,
    read_limits,
    render_jobs,
    render_message,
    render_pam_limits,
    render_partitions,
    shows_own_group,
)


@pytest.mark.parametrize(
    ("is_stopping", "sessions", "then"),
    [
        pytest.param(True, 2, Next.LEAVE, id="told-to-end"),
        pytest.param(False, 2, Next.AGAIN, id="sessions-go-on"),
        pytest.param(False, 0, Next.FAIL, id="nobody-there"),
    ],
)
def test_end_of_sshd(is_stopping: bool, sessions: int, then: Next) -> None:
    assert plan_end(is_stopping, sessions) is then


def test_idle_nodes_are_those_that_can_take_a_job() -> None:
    lines = "main|2|idle\nmain|3|idle~\nmain|1|idle*\nmain|4|mixed\nmain|1|drained\nmain|1|planned-\ngpu-with-a-long-name|1|allocated+\n"
    assert render_partitions(lines).splitlines() == [
        "PARTITION                 IDLE    IN USE     OTHER     NODES",
        "main                         6         4         2        12",
        "gpu-with-a-long-name         0         1         0         1",
    ]
    assert render_partitions("slipway-checks|4|idle\n") == render_partitions("")
    assert render_partitions("") == "PARTITION      IDLE    IN USE     OTHER     NODES\n"


def test_line_that_is_no_partition_is_a_fault() -> None:
    with pytest.raises(ValueError, match="unpack"):
        render_partitions("sinfo: something else\n")


def test_jobs_are_counted_by_user() -> None:
    metrics = """# HELP slurm_user_jobs_running jobs
slurm_user_jobs_running{username="bob"} 2
slurm_user_jobs_running{username="alice"} 1.5e+01
slurm_user_jobs_pending{username="alice"} 3
slurm_user_jobs_suspended{username="carol"} 4
slurm_account_jobs_running{account="ml"} 5
"""
    assert render_jobs(metrics) == "alice 15 3\nbob 2 0\n"
    assert render_jobs("") == ""


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        pytest.param("", {}, id="none"),
        pytest.param("cpus=1\n\ntasks=70\n", {"cpus": 1, "tasks": 70}, id="some"),
        pytest.param("cpus=1\ntasks=", None, id="cut"),
        pytest.param("tasks=-1\n", None, id="negative"),
        pytest.param("tasks=1 # few\n", None, id="with-more"),
    ],
)
def test_limits_are_whole_or_none(text: str, limits: dict[str, int] | None) -> None:
    assert read_limits(text) == limits


@pytest.mark.parametrize(
    ("most_tasks", "most_kib", "text"),
    [
        pytest.param(None, None, "* - nproc 70\n* - as 2048000\n", id="as-said"),
        pytest.param(60, 1024, "* - nproc 60\n* - as 1024\n", id="no-more-than-the-pod-may-have"),
        pytest.param(80, 4096000, "* - nproc 70\n* - as 2048000\n", id="the-pod-may-have-more"),
    ],
)
def test_pam_limits(most_tasks: int | None, most_kib: int | None, text: str) -> None:
    assert render_pam_limits({"cpus": 1, "tasks": 70, "memoryMiB": 2000}, most_tasks, most_kib) == text


_V2 = "30 23 0:26 {root} /sys/fs/cgroup ro - cgroup2 cgroup ro\n31 23 0:27 / /sys/fs/cgroup/other ro - tmpfs t ro\n"
_V1 = "40 30 0:30 {root} /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup ro,cpu,cpuacct\n"


@pytest.mark.parametrize(
    ("groups", "mounts", "point", "controller", "is_own"),
    [
        pytest.param("0::/\n", _V2.format(root="/"), "/sys/fs/cgroup", "", True, id="v2-cgroup-namespace"),
        pytest.param("0::/pod/c\n", _V2.format(root="/"), "/sys/fs/cgroup", "", False, id="v2-the-machine-s"),
        pytest.param("4:cpu,cpuacct:/pod/c\n", _V1.format(root="/pod/c"), "/sys/fs/cgroup/cpu,cpuacct", "cpu", True, id="v1"),
        pytest.param("4:cpu,cpuacct:/pod/c\n", _V1.format(root="/pod"), "/sys/fs/cgroup/cpu,cpuacct", "cpu", False, id="v1-above"),
        pytest.param(
            "4:cpuset:/pod/c\n", _V1.format(root="/pod/c"), "/sys/fs/cgroup/cpu,cpuacct", "cpu", False, id="v1-no-such-controller"
        ),
        pytest.param("0::/\n", "", "/sys/fs/cgroup", "", False, id="no-mount"),
        pytest.param(
            "0::/c\n",
            _V2.format(root="/") + _V2.format(root="/c").splitlines()[0],
            "/sys/fs/cgroup",
            "",
            True,
            id="the-last-mount-counts",
        ),
    ],
)
def test_groups_are_made_only_below_the_container_s_own(groups: str, mounts: str, point: str, controller: str, is_own: bool) -> None:
    assert shows_own_group(groups, mounts, point, controller) is is_own


@pytest.mark.parametrize(
    ("bound", "may"),
    [
        pytest.param("00000000a80425fb", True, id="with"),
        pytest.param("00000000200400cb", False, id="without"),
        pytest.param("", False, id="x"),
    ],
)
def test_setpcap_is_read_from_the_bounding_set(bound: str, may: bool) -> None:
    assert may_set_capabilities(f"Name:\tpython3\nCapBnd:\t{bound}\n") is may


V1 = ("cpu/users/7/cpu.cfs_quota_us", "memory/users/7/memory.limit_in_bytes", "pids/users/7/pids.max")
V2 = ("v2/users/7/cpu.max", "v2/users/7/memory.max", "v2/users/7/pids.max")


@pytest.mark.parametrize(
    ("is_v2", "limits", "files"),
    [
        pytest.param(False, {"cpus": 2, "memoryMiB": 3, "tasks": 60}, dict(zip(V1, ("200000", "3145728", "60"), strict=True)), id="v1"),
        pytest.param(True, {"cpus": 2, "memoryMiB": 3, "tasks": 60}, dict(zip(V2, ("200000", "3145728", "60"), strict=True)), id="v2"),
        pytest.param(False, {}, dict(zip(V1, ("-1", "-1", "max"), strict=True)), id="v1-lifted"),
        pytest.param(True, {}, dict(zip(V2, ("max", "max", "max"), strict=True)), id="v2-lifted"),
        pytest.param(True, {"tasks": 0}, dict(zip(V2, ("max", "max", "0"), strict=True)), id="nothing-is-a-limit-too"),
    ],
)
def test_limits_are_files_of_the_user_s_groups(is_v2: bool, limits: dict[str, int], files: dict[str, str]) -> None:
    assert cgroup_files(7, is_v2, limits) == files
    assert {file.rpartition("/")[0] for file in files} == set(group_folders(7, is_v2))


JOBS = "alice 2 3\nbob 0 1\n"


@pytest.mark.parametrize(
    ("user", "age_s", "said"),
    [
        pytest.param("alice", 5, "TABLE\nYour jobs: 2 running, 3 waiting. ", id="with-jobs"),
        pytest.param("carol", 90, "TABLE\nYour jobs: 0 running, 0 waiting. ", id="without"),
        pytest.param("bob", 91, "The cluster as it was 91 s ago; slurmctld has not answered since.\nTABLE\n", id="old"),
    ],
)
def test_session_shows_the_cluster_and_its_own_users_jobs(user: str, age_s: int, said: str) -> None:
    assert render_message("TABLE\n", JOBS, age_s, user).startswith(said)


def test_jobs_that_are_nobodys_to_see_are_not_counted() -> None:
    assert render_message("TABLE\n", None, 0, "alice") == "TABLE\nMore: sinfo, squeue --me; ssh NODE goes where a job of yours runs.\n"


@pytest.mark.parametrize("jobs", ["nonsense\n", "alice two 3\n", "alice 1 2 3\n"])
def test_jobs_that_are_none_are_an_error_and_not_shown_as_none(jobs: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        render_message("", jobs, 0, "alice")
