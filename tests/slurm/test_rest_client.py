"""The controllers' REST client against a real slurmrestd and slurmctld of the image: what the fake server of the unit tests stands for."""

import asyncio
import base64
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.nodeset.observe import node_job
from controllers.nodeset.workers import NodeJob
from controllers.slurm.client import NodeUpdate, SlurmClient, SlurmError, SlurmRefused, SlurmUnauthorized, SlurmUnreachable
from controllers.slurm.snapshot import Poller
from slurm.hostlists import expand
from slurm.maintenance import RESERVATION_COMMAND, read_windows
from slurm.states import NodeState, is_drained, is_idle, node_state
from tests.support.patience import patience, seconds
from tests.support.slurm.elastic_cluster import NAMES, TIMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import ALICE, SLURMRESTD
from tests.support.slurm.rest_client import PREFIX, ask

FOLDER = Path("/var/tmp/slipway-rest-pods")
NODES = {"fix-0", "fix-1", "el-0", "el-1", "el-2", "el-3"}
OLDER = "t-older"
"""Pod of a slurmrestd that serves an older data parser only."""


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[ElasticCluster]:
    """slurmctld, slurmrestd, and one worker."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()
    FOLDER.mkdir(mode=0o755)
    names = {"t-slurmctld-0": ["t-slurmctld"], "t-slurmrestd": [], OLDER: [], "fix-0": []}
    made = ElasticCluster(machine, stack=elastic_stack(), names={**NAMES, **names})
    try:
        made.start_with_rest()
        yield made
    finally:
        machine.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


def test_every_node_of_the_files_is_there_with_a_state_that_is_known(cluster: ElasticCluster) -> None:
    found = ask(cluster, lambda client: client.nodes())
    assert found is not None
    assert {node.name for node in found.nodes} == NODES
    assert [node.name for node in found.nodes if not node_state(node.words).is_known] == []
    assert node_state(next(node.words for node in found.nodes if node.name == "el-1")).flags >= {"IDLE", "CLOUD", "POWERED_DOWN"}


def test_bulk_drain_and_undrain_by_a_hostlist(cluster: ElasticCluster) -> None:
    async def work(client: SlurmClient) -> list[bool]:
        seen: list[bool] = []
        updates: list[tuple[NodeUpdate, str | None]] = [("DRAIN", "slipway: a test"), ("UNDRAIN", None)]
        for update, reason in updates:
            await client.update_nodes(["fix-0", "fix-1", "el-0"], update, reason)
            nodes = await client.nodes()
            assert nodes is not None
            states = {node.name: node for node in nodes.nodes}
            seen.append(is_drained(node_state(states["fix-0"].words)))
            assert states["fix-1"].reason == (reason or "")
        return seen

    assert ask(cluster, work) == [True, False]


def test_update_with_an_unknown_node_is_an_error_but_changes_the_others(cluster: ElasticCluster) -> None:
    with pytest.raises(SlurmRefused):
        ask(cluster, lambda client: client.update_nodes(["fix-0", "nobody-7"], "DRAIN", "slipway: a test"))
    assert "DRAIN" in cluster.state("fix-0")
    ask(cluster, lambda client: client.update_nodes(["fix-0"], "UNDRAIN"))
    wait_for("fix-0", lambda: cluster.state("fix-0") == "IDLE+CLOUD")


def test_node_that_powers_down_is_released_and_others_are_left_alone(cluster: ElasticCluster) -> None:
    cluster.configure(elastic_stack(), times={**TIMES, "SuspendTimeout": "600"})  # else Slurm itself may be the first
    cluster.taken()
    cluster.slurm("scontrol", "update", "NodeName=el-[1-2]", "State=POWER_DOWN")
    for node in ("el-1", "el-2"):
        wait_for(f"{node} on its way down", lambda node=node: cluster.state(node) == "IDLE+CLOUD+POWERING_DOWN")
    ask(cluster, lambda client: client.release_nodes(["el-0", "el-1", "el-2", "fix-0"]))
    states = [cluster.state(node) for node in ("el-0", "el-1", "el-2", "fix-0")]
    assert states == [*["IDLE+CLOUD+POWERED_DOWN"] * 3, "IDLE+CLOUD"]
    with pytest.raises(SlurmRefused):
        ask(cluster, lambda client: client.release_nodes(["nobody-7"]))


def test_job_is_seen_on_its_node_and_can_be_requeued_and_cancelled(cluster: ElasticCluster) -> None:
    job = cluster.running("--partition=main", "--nodelist=fix-0", "--requeue")

    async def jobs_of_the_node(client: SlurmClient) -> list[str]:
        poller = Poller(client, time.monotonic)
        return [state for one in (await poller.fresh()).jobs_by_node.get("fix-0", []) for state in one.job_state]

    assert "RUNNING" in ask(cluster, jobs_of_the_node)
    ask(cluster, lambda client: client.requeue_jobs([job]))
    wait_for("requeued", lambda: cluster.job(job, "Restarts") == "1")
    other = cluster.running("--partition=main", "--nodelist=fix-0")
    ask(cluster, lambda client: client.cancel_jobs(["fix-0"]))
    wait_for("cancelled", lambda: cluster.job(other) == "CANCELLED")
    assert cluster.job(job) == "PENDING", "a job that waits for no node in particular is not the node's"
    cluster.slurm("scancel", job)


def test_slurm_requeues_only_batch_jobs_and_says_in_advance_which(cluster: ElasticCluster) -> None:
    """What `NodeJob.can_requeue` stands on: of several jobs some are refused, and the others requeued."""
    refusing = cluster.running("--partition=main", "--nodelist=fix-0", "--cpus-per-task=1", "--no-requeue")
    cluster.slurm("salloc", "--no-shell", "--partition=main", "--nodelist=fix-0", user=ALICE)
    [interactive] = set(cluster.slurm("squeue", "--noheader", "--nodelist=fix-0", "--format=%A").split()) - {refusing}

    async def jobs(client: SlurmClient) -> dict[int, NodeJob]:
        on_node = (await Poller(client, time.monotonic).fresh()).jobs_by_node.get("fix-0", [])
        return {job.job_id: node_job(job) for job in on_node}

    def requeue_all(*numbers: str) -> set[int]:
        """The errors of those that were refused."""
        with pytest.raises(SlurmRefused) as refused:
            ask(cluster, lambda client: client.requeue_jobs(numbers))
        return {fault.error_number for fault in refused.value.faults}

    try:
        seen = ask(cluster, jobs)
        assert seen[int(refusing)] == NodeJob(refusing, allows_requeue=False)
        assert seen[int(interactive)] == NodeJob(interactive, is_batch=False)
        assert requeue_all(refusing, interactive) == {2037, 2039}
        assert cluster.job(interactive) == "RUNNING"
        cluster.slurm("scancel", interactive)
        willing = cluster.running("--partition=main", "--nodelist=fix-0", "--cpus-per-task=1", "--requeue")
        assert requeue_all(refusing, willing) == {2037}
        wait_for("requeued", lambda: cluster.job(willing, "Restarts") == "1")
        ask(cluster, lambda client: client.requeue_jobs([willing, "999999"]))  # waits already; unknown: no error
        cluster.slurm("scontrol", "update", f"jobid={refusing}", "requeue=1")
        assert ask(cluster, jobs)[int(refusing)].can_requeue
        ask(cluster, lambda client: client.requeue_jobs([refusing]))
        wait_for("requeued", lambda: cluster.job(refusing, "Restarts") == "1")
    finally:
        cluster.slurm("scancel", f"--user={ALICE}")
        wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)


def test_running_jobs_report_their_end_and_a_foreign_token_is_refused(cluster: ElasticCluster, tmp_path: Path) -> None:
    job = cluster.running("--partition=main", "--nodelist=fix-0", "--time=60")
    waiting = cluster.submit("--partition=main", "--nodelist=fix-0", "--hold")
    try:
        [seen] = ask(cluster, lambda client: client.jobs()).jobs
        assert (str(seen.job_id), seen.nodes, seen.job_state) == (job, "fix-0", ("RUNNING",))
        assert seen.end_time.value == cluster.ends_at(job)
    finally:
        cluster.slurm("scancel", job, waiting)
    key = tmp_path / "key"
    key.write_bytes(secrets.token_bytes(32))
    with pytest.raises(SlurmUnauthorized):
        ask(cluster, lambda client: client.jobs(), key=key)
    wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)


def test_killed_slurmrestd_that_comes_back_at_once_is_not_noticed(cluster: ElasticCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.slurm.client._RESTART_S", seconds(8))

    async def work(client: SlurmClient) -> int:
        await client.nodes()
        cluster.containers["t-slurmrestd/slurmrestd"].stop("KILL")
        starting = asyncio.get_running_loop().run_in_executor(None, cluster.slurmrestd)
        found = await client.nodes()
        await starting
        assert found is not None
        return len(found.nodes)

    assert ask(cluster, work) == len(NODES)


def jobs_on(cluster: ElasticCluster, node: str) -> list[str]:
    """What a plan knows of the jobs on a node: their numbers."""

    async def ask_once(client: SlurmClient) -> list[str]:
        return [node_job(job).number for job in (await Poller(client, time.monotonic).fresh()).jobs_by_node.get(node, [])]

    return ask(cluster, ask_once)


def test_task_of_an_array_is_requeued_alone(cluster: ElasticCluster) -> None:
    """The number of one of its tasks is the whole array's as well: requeued by that, all its tasks would be."""
    # slurmctld starts no array when it is submitted, but by and by; or when it is released.
    array = cluster.submit("--partition=main", "--nodelist=fix-0", "--array=0-1", "--cpus-per-task=1", "--requeue", "--hold")
    cluster.slurm("scontrol", "release", array)

    def tasks(key: str) -> list[str]:
        return [cluster.job(f"{array}_{task}", key) for task in (0, 1)]

    try:
        wait_for("both tasks", lambda: tasks("JobState") == ["RUNNING", "RUNNING"], deadline_s=150)
        assert sorted(jobs_on(cluster, "fix-0")) == [f"{array}_0", f"{array}_1"]
        last = tasks("JobId").index(array)
        ask(cluster, lambda client: client.requeue_jobs([f"{array}_{last}"]))
        wait_for("requeued", lambda: tasks("Restarts")[last] == "1", deadline_s=60)
        assert (tasks("JobState")[1 - last], tasks("Restarts")[1 - last]) == ("RUNNING", "0")
    finally:
        cluster.slurm("scancel", array)
    wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)


def test_part_of_a_heterogeneous_job_is_requeued_with_all_of_it(cluster: ElasticCluster) -> None:
    leader = cluster.running("--partition=main", "--nodelist=fix-0", "--requeue", ":", "--partition=main", "--nodelist=fix-1", "--requeue")
    try:
        assert [jobs_on(cluster, node) for node in ("fix-0", "fix-1")] == [[leader], [leader]]
        ask(cluster, lambda client: client.requeue_jobs([leader]))
        wait_for("requeued", lambda: [cluster.job(f"{leader}+{part}", "Restarts") for part in (0, 1)] == ["1", "1"], deadline_s=60)
    finally:
        cluster.slurm("scancel", leader)


def test_node_whose_job_is_suspended_is_not_drained(cluster: ElasticCluster) -> None:
    job = cluster.running("--partition=main", "--nodelist=fix-0")

    async def state(client: SlurmClient) -> NodeState:
        await client.update_nodes(["fix-0"], "DRAIN", "slipway: a test")
        return (await Poller(client, time.monotonic).fresh()).nodes["fix-0"].state

    try:
        cluster.slurm("scontrol", "suspend", job)
        seen = ask(cluster, state)
        assert not is_drained(seen)
        assert not is_idle(seen)
    finally:
        cluster.slurm("scancel", job)
        ask(cluster, lambda client: client.update_nodes(["fix-0"], "UNDRAIN"))


def test_partitions_are_listed_with_their_nodes(cluster: ElasticCluster) -> None:
    found = {one.name: one for one in ask(cluster, lambda client: client.partitions()).partitions}
    shown = dict(line.split() for line in cluster.slurm("sinfo", "--noheader", "--format=%R %N").splitlines())
    assert found.keys() == shown.keys()
    assert all(list(expand(found[name].nodes.configured)) == list(expand(nodes)) for name, nodes in shown.items())
    assert found["main"].partition.state == ("UP",)
    cluster.slurm("scontrol", "update", "PartitionName=main", "State=DRAIN")
    try:
        [main] = [one for one in ask(cluster, lambda client: client.partitions()).partitions if one.name == "main"]
        assert main.partition.state == ("DRAIN",)
    finally:
        cluster.slurm("scontrol", "update", "PartitionName=main", "State=UP")


def test_reservation_is_listed(cluster: ElasticCluster) -> None:
    cluster.slurm(
        "scontrol",
        "create",
        "reservation",
        "ReservationName=window",
        "StartTime=now",
        "Duration=5",
        "Nodes=fix-1",
        "Users=root",
        "Flags=maint",
    )
    try:
        found = ask(cluster, lambda client: client.reservations())
    finally:
        cluster.slurm("scontrol", "delete", "ReservationName=window")
    assert [one.name for one in found.reservations] == ["window"]


def test_node_is_reserved_from_a_time_on_and_released_and_its_job_stays(cluster: ElasticCluster) -> None:
    begin = int(time.time()) + 3600
    submit = ("sbatch", "--parsable", "--nodelist=fix-0", "--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 300")
    job = cluster.slurm(*submit, user=ALICE).strip()
    wait_for("the job", lambda: "RUNNING" in cluster.slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T"))
    try:
        ask(cluster, lambda client: client.reserve("slipway-event-fix-0", "fix-0", begin, "maintenance was announced"))
        [found] = ask(cluster, lambda client: client.reservations()).reservations
        assert (found.name, found.node_list, found.start_time.value) == ("slipway-event-fix-0", "fix-0", begin)
        shown = cluster.slurm("bash", "-c", f"SLURM_TIME_FORMAT=%s {' '.join(RESERVATION_COMMAND)}")
        assert [(window.name, window.start, window.nodes) for window in read_windows(shown)] == [(found.name, begin, {"fix-0"})]
        ask(cluster, lambda client: client.reserve("slipway-event-fix-0", "fix-0", begin + 60, "put off"))
        [moved] = ask(cluster, lambda client: client.reservations()).reservations
        assert (moved.name, moved.start_time.value) == (found.name, begin + 60)
        ask(cluster, lambda client: client.reserve("slipway-event-fix-0", "fix-0", int(time.time()) + 2, "earlier"))
        wait_for("its begin", lambda: "State=ACTIVE" in cluster.slurm("scontrol", "show", "reservation", "--oneliner"))
        with pytest.raises(SlurmRefused):
            ask(cluster, lambda client: client.reserve("slipway-event-fix-0", "fix-0", begin, "put off again"))
        with pytest.raises(SlurmRefused):
            ask(cluster, lambda client: client.reserve("slipway-event-fix-1", "fix-1", begin - 7200, "in the past"))
        assert "RUNNING" in cluster.slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T")
    finally:
        cluster.slurm("scancel", job)
        for _ in range(2):
            ask(cluster, lambda client: client.release("slipway-event-fix-0"))
    assert ask(cluster, lambda client: client.reservations()).reservations == ()


def test_unchanged_nodes_are_not_sent_again_and_a_change_is_never_missed(cluster: ElasticCluster) -> None:
    async def quiet(client: SlurmClient) -> bool:
        first = await client.nodes()
        assert first is not None
        end = time.monotonic() + 30 * patience()
        while time.monotonic() < end:
            if await client.nodes(first.last_update.value) is None:
                return True
            again = await client.nodes()
            assert again is not None
            first = again
            await asyncio.sleep(0.5)
        return False

    assert ask(cluster, quiet)

    async def follow(client: SlurmClient) -> list[str]:
        poller = Poller(client, time.monotonic)
        await poller.fresh()
        seen: list[str] = []
        for number in range(20):
            # At any place within a second, which is as fine as Slurm's own clock goes.
            await client.update_nodes(["fix-1"], "DRAIN", f"slipway: change {number}")
            seen.append((await poller.poll()).nodes["fix-1"].reason)
            await asyncio.sleep(0.13)
        await client.update_nodes(["fix-1"], "UNDRAIN")
        return seen

    assert ask(cluster, follow) == [f"slipway: change {number}" for number in range(20)]


def jobs_of_many_readings(cluster: ElasticCluster, pod: str = "t-slurmrestd") -> list[list[int]]:
    """The jobs in each of ten snapshots, with time enough for nothing to change between the last. The first waits for its list of jobs."""

    async def follow(client: SlurmClient) -> list[list[int]]:
        poller = Poller(client, time.monotonic, jobs_wait_s=30 * patience())
        seen: list[list[int]] = []
        for _ in range(10):
            seen.append([job.job_id for job in (await poller.fresh()).jobs])
            await asyncio.sleep(0.3)
        return seen

    return ask(cluster, follow, pod=pod)


def test_running_job_is_in_every_reading_also_when_nothing_has_changed(cluster: ElasticCluster) -> None:
    wait_for("no job", lambda: not cluster.slurm("squeue", "--noheader").strip())
    assert jobs_of_many_readings(cluster) == [[]] * 10
    job = cluster.running("--partition=main", "--nodelist=fix-0")
    try:
        assert jobs_of_many_readings(cluster) == [[int(job)]] * 10
    finally:
        cluster.slurm("scancel", job)


def test_expired_token_is_renewed_before_anybody_notices(cluster: ElasticCluster) -> None:
    life_s = 6 + seconds(2)

    async def work(client: SlurmClient) -> bool:
        await client.nodes()
        await asyncio.sleep(life_s + 1)
        return (await client.nodes()) is not None

    assert ask(cluster, work, life_s=life_s)


def test_wrong_key_is_an_error_of_its_own(cluster: ElasticCluster, tmp_path: Path) -> None:
    wrong = tmp_path / "key"
    wrong.write_bytes(base64.b64encode(secrets.token_bytes(32)))
    with pytest.raises(SlurmUnauthorized, match="refused the token"):
        ask(cluster, lambda client: client.nodes(), key=wrong)


def test_key_that_is_put_right_works_without_a_new_client(cluster: ElasticCluster, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(base64.b64encode(secrets.token_bytes(32)))

    async def work(client: SlurmClient) -> bool:
        with pytest.raises(SlurmUnauthorized):
            await client.nodes()
        key.write_bytes((cluster.machine.folder / "volume-jwt" / "jwt_hs256.key").read_bytes())
        return (await client.nodes()) is not None

    assert ask(cluster, work, key=key)


def test_stopped_slurmctld_is_an_error_within_the_deadline_and_heals(cluster: ElasticCluster) -> None:
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    controller.run("pkill", "--signal", "STOP", "^slurmctld", user=64030)
    begin = time.monotonic()
    try:
        with pytest.raises(SlurmError):
            ask(cluster, lambda client: client.nodes(), deadline_s=3)
        assert time.monotonic() - begin < 10 * patience()
    finally:
        controller.run("pkill", "--signal", "CONT", "^slurmctld", user=64030)
    wait_for("answers again", lambda: ask(cluster, lambda client: client.partitions()).partitions, deadline_s=30)


def test_killed_slurmrestd_is_unreachable_and_heals(cluster: ElasticCluster) -> None:
    cluster.containers["t-slurmrestd/slurmrestd"].stop("KILL")
    with pytest.raises(SlurmUnreachable):
        ask(cluster, lambda client: client.nodes())
    cluster.slurmrestd()

    def answers() -> bool:
        try:
            return ask(cluster, lambda client: client.nodes()) is not None
        except SlurmError:
            return False

    wait_for("answers again", answers, deadline_s=30)


@pytest.fixture
def older(cluster: ElasticCluster) -> ElasticCluster:
    """The cluster with one more slurmrestd: as the image starts it, but with data parser v0.0.44 in place of v0.0.45."""
    mounts = {"/etc/slurm": cluster.path("slurm"), "/var/lib/extrausers": cluster.path("users")}
    script = 'exec bash -c "$(sed s/v0.0.45/v0.0.44/ /opt/slipway/scripts/slurmrestd.sh)"'
    container = cluster.machine.start(
        OLDER,
        "slurmrestd",
        ["bash", "-c", script],
        {**mounts, "/tmp": (cluster.empty("older-tmp"), False)},
        user=SLURMRESTD,
        read_only=True,
    )
    cluster.containers[f"{OLDER}/slurmrestd"] = container
    cluster.running_jobs(OLDER)

    def answers() -> bool:
        try:
            return bool(ask(cluster, lambda client: client.partitions(), pod=OLDER).partitions)
        except SlurmUnreachable:
            return False

    wait_for("an answer", answers)
    return cluster


def test_server_with_the_older_data_parser_alone_does_all_but_requeue(older: ElasticCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    job = older.running("--partition=main", "--nodelist=fix-0", "--requeue")
    assert jobs_of_many_readings(older, pod=OLDER) == [[int(job)]] * 10

    async def work(client: SlurmClient) -> NodeJob:
        await client.update_nodes(["fix-0", "fix-1"], "DRAIN", "slipway: an older server")
        snapshot = await Poller(client, time.monotonic, wants_reservations=lambda: True).fresh()
        assert set(snapshot.nodes) == NODES
        assert all(node.state.is_known for node in snapshot.nodes.values())
        assert snapshot.nodes["fix-1"].reason == "slipway: an older server"
        assert time.time() - (snapshot.nodes["fix-1"].reason_changed_at.value or 0) < 60
        assert is_drained(snapshot.nodes["fix-1"].state)
        assert not is_drained(snapshot.nodes["fix-0"].state), "it has a job"
        await client.update_nodes(["fix-0", "fix-1"], "UNDRAIN")
        with pytest.raises(SlurmRefused, match=r"serves v0\.0\.44, which cannot requeue jobs"):
            await client.requeue_jobs([job])
        assert not client.can_requeue
        await client.cancel_jobs(["fix-0"])
        [seen] = snapshot.jobs_by_node["fix-0"]
        return node_job(seen)

    try:
        assert ask(older, work, pod=OLDER) == NodeJob(job)
        wait_for("cancelled", lambda: older.job(job) == "CANCELLED")
        with pytest.raises(SlurmRefused):
            ask(older, lambda client: client.update_nodes(["nobody-7"], "DRAIN", "slipway: a test"), pod=OLDER)
    finally:
        older.slurm("scancel", job)
    monkeypatch.setattr("controllers.slurm.client.VERSIONS", ("v0.0.45",))
    with pytest.raises(SlurmUnreachable, match=r"serves none of v0\.0\.45"):
        ask(older, lambda client: client.partitions(), pod=OLDER)
