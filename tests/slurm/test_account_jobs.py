"""What accounts, QOS and limits from the config mean for jobs of plain users on real workers: which run, which wait, and who keeps what."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

import pytest

from cli.check.facts import WAIT_FOR_ACCOUNT
from configs.render.gpu_jobs import FOLDER as FOLDER_OF_GPUS
from names import ports
from programs.metrics.settings import Settings, to_json
from tests.support.patience import seconds
from tests.support.programs.metrics.recorded import of
from tests.support.slurm.accounts_cluster import ALICES, BOB, ENFORCE, AccountsCluster, enforced, running
from tests.support.slurm.image_pods import PodError, wait_for
from tests.support.slurm.image_stack import ALICE, STACK

GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())"
FOLDER = Path("/var/tmp/slipway-account-jobs")


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[AccountsCluster]:
    with running(FOLDER, "swaj-", image_root) as made:
        yield made


@pytest.fixture(autouse=True)
def empty(cluster: AccountsCluster) -> None:
    cluster.make_empty()


def test_limits_are_slurms_own_reasons(cluster: AccountsCluster) -> None:
    account = {**ALICES, "limits": {"maxTresPerJob": "gres/gpu=1", "maxJobs": 1, "maxSubmitJobs": 3}}
    cluster.declare({"enforce": ENFORCE, "accounts": [account], "qos": [{"name": "strict", "flags": ["DenyOnLimit"]}]})
    cluster.joined("ml|alice")
    enforced(cluster)
    cluster.reason(cluster.submit("--gres=gpu:2"), "AssocMaxGRESPerJob")
    cluster.state(cluster.submit("--gres=gpu:1"), "RUNNING")
    cluster.reason(cluster.submit(), "AssocMaxJobsLimit")
    with pytest.raises(PodError, match="AssocMaxSubmitJobLimit"):
        cluster.submit()
    with pytest.raises(PodError, match="Invalid account"):
        cluster.submit(uid=BOB)


def test_partition_takes_the_accounts_and_the_limits_of_its_qos(cluster: AccountsCluster) -> None:
    main = STACK["partitions"][0]
    more = {"name": "more", "nodeSets": ["gpu"], "allowAccounts": ["ml"], "qos": "small", "allowQos": ["normal"]}
    accounting = {
        "enforce": ENFORCE,
        "accounts": [ALICES, {"name": "vision", "parent": "ml", "users": ["alice"]}, {"name": "other", "users": ["bob"]}],
        "qos": [{"name": "small", "limits": {"maxTresPerUser": "cpu=2"}}],
    }
    cluster.declare(accounting, partitions=[main, more])
    # Slurm refuses the files until the QOS is there, and is asked again within a minute.
    wait_for("the partition", lambda: "more" in cluster.slurm("sinfo", "--noheader", "--format", "%R"), deadline_s=90)
    cluster.joined("ml|alice", "vision|alice", "other|bob")
    cluster.state(cluster.submit("--partition=more", "--cpus-per-task=2"), "RUNNING")
    cluster.reason(cluster.submit("--partition=more", "--account=vision", "--cpus-per-task=2"), "QOSMaxCpuPerUserLimit")
    with pytest.raises(PodError, match="Invalid account"):
        cluster.submit("--partition=more", uid=BOB)
    # The QOS goes only once the partition has let go of it.
    cluster.slurm("scancel", "--user=alice")


def test_unknown_qos_is_refused_with_the_names_that_there_are(cluster: AccountsCluster) -> None:
    """Without enforcement, where Slurm itself would run the job in the default QOS; also for a QOS that an administrator has made."""
    cluster.declare({"accounts": [ALICES], "qos": [{"name": "urgent"}]})
    wait_for("the QOS", lambda: "urgent" in cluster.qos_there(), deadline_s=30)
    with pytest.raises(PodError, match=r"--qos=nope: there is no such QOS\. There are: normal, urgent\."):
        cluster.submit("--qos=nope", "--hold")
    assert cluster.submit("--qos=Urgent", "--hold")


def test_fair_share_is_what_the_config_says(cluster: AccountsCluster) -> None:
    accounts = [{**ALICES, "fairshare": 30}, {"name": "vision", "users": ["bob"], "fairshare": 70, "perUser": {"bob": {"fairshare": 5}}}]
    cluster.declare({"accounts": accounts})
    cluster.joined("ml|alice", "vision|bob")

    def shares() -> set[str]:
        return {row.strip() for row in cluster.slurm("sshare", "-nPa", "--format=Account,User,RawShares,NormShares").splitlines()}

    wait_for("shares", lambda: {"ml||30|0.297030", "vision||70|0.693069", "vision|bob|5|1.000000"} <= shares())


def test_job_of_a_higher_qos_takes_the_place_of_a_lower(cluster: AccountsCluster) -> None:
    settings = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
    both = ["normal", "urgent"]
    accounting = {
        "enforce": ENFORCE,
        "accounts": [{**ALICES, "qos": both}],
        "qos": [{"name": "urgent", "priority": 10, "preempt": ["normal"]}],
    }
    cluster.declare(accounting, slurm={"cgroupVersion": "auto", "settings": settings})
    cluster.joined("ml|alice")
    enforced(cluster)
    lower = [cluster.submit("--exclusive") for _ in range(2)]
    for job in lower:
        cluster.state(job, "RUNNING")
    cluster.state(cluster.submit("--exclusive", "--qos=urgent"), "RUNNING")
    assert sorted(cluster.job(job) for job in lower) == ["PENDING", "RUNNING"]


def test_account_with_a_running_job_goes_after_it_and_takes_no_new_one(cluster: AccountsCluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES], "qos": [{"name": "short"}]})
    cluster.joined("ml|alice")
    enforced(cluster)
    told = cluster.machine.folder / "volume-home/told"
    job = cluster.submit(script="until [ -e /home/told ]; do sleep 0.2; done")
    cluster.state(job, "RUNNING")
    waiting = cluster.submit("--begin=now+1hour")
    cluster.declare({"enforce": ENFORCE, "accounts": []})
    wait_for("a clear line", lambda: "alice in account ml: not removed yet, they have jobs" in cluster.keeper.log)
    with pytest.raises(PodError, match="AssocMaxSubmitJobLimit"):
        cluster.submit()
    assert cluster.job(job) == "RUNNING"
    told.touch()
    cluster.state(job, "COMPLETED")
    # slurmdbd knows nothing of a job that may not begin yet, and would remove the association; slurmctld does.
    again = cluster.keeper.log.count("alice in account ml")
    cluster.keeper.stop("KILL")
    cluster.accounts()
    wait_for("a look after the job's end", lambda: "alice in account ml: not removed yet, they have jobs" in cluster.keeper.log)
    assert again == 1
    assert (cluster.accounts_there(), cluster.job(waiting)) == ({"ml"}, "PENDING")
    cluster.slurm("scancel", waiting)
    wait_for("no account", lambda: cluster.accounts_there() == set(), deadline_s=30)


def test_qos_with_a_running_job_goes_after_it(cluster: AccountsCluster) -> None:
    account = {**ALICES, "qos": ["normal", "short"]}
    cluster.declare({"enforce": ENFORCE, "accounts": [account], "qos": [{"name": "short"}]})
    cluster.joined("ml|alice")
    enforced(cluster)
    job = cluster.submit("--qos=short")
    cluster.state(job, "RUNNING")
    cluster.declare({"enforce": ENFORCE, "accounts": [{**ALICES, "qos": ["normal"]}]})
    wait_for("a clear line", lambda: "QOS short: not removed yet, jobs or partitions have it" in cluster.keeper.log)
    assert cluster.job(job) == "RUNNING"
    cluster.slurm("scancel", job)
    wait_for("no QOS", lambda: cluster.qos_there() == set(), deadline_s=30)


def test_users_without_an_account_have_the_default_one(cluster: AccountsCluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES], "defaultAccount": "guests"})
    cluster.joined("ml|alice", "guests|bob")
    enforced(cluster)
    job = cluster.submit(uid=BOB)
    cluster.state(job, "RUNNING")
    assert cluster.job(job, "%a") == "guests"


def test_enforcement_ends_no_running_job_and_holds_waiting_ones(cluster: AccountsCluster) -> None:
    running = [cluster.submit("--exclusive") for _ in range(2)]
    for job in running:
        cluster.state(job, "RUNNING")
    waiting = cluster.submit("--exclusive")
    cluster.declare({"enforce": ENFORCE, "accounts": []})
    enforced(cluster)
    cluster.reason(waiting, "InvalidAccount")
    assert [cluster.job(job) for job in running] == ["RUNNING", "RUNNING"]
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES]})
    cluster.joined("ml|alice")
    # A job from before has no account, and Slurm gives it none by itself. Once the scheduler has looked at the job beside its user's new
    # account, as when another job ends, Slurm refuses that account: "Requested partition configuration not available now".
    wait_for("its account", lambda: cluster.slurm("scontrol", "update", f"JobId={waiting}", "Account=ml") == "")
    cluster.slurm("scancel", *running)
    cluster.state(waiting, "RUNNING")


def test_first_jobs_wait_until_their_user_has_an_account(cluster: AccountsCluster) -> None:
    """What `make up` does before its jobs: in a new cluster slurmctld is there before the accounts are."""
    cluster.declare({"enforce": ["associations"], "accounts": []})
    enforced(cluster)
    with pytest.raises(PodError, match="Invalid account"):
        cluster.submit(script="true")
    worker = cluster.containers["gpu-0/slurmd"]
    with ThreadPoolExecutor() as pool:
        conf = {"SLURM_CONF": "/run/slurm/conf/slurm.conf"}
        waiting = pool.submit(worker.run, "bash", "-c", f"set -e\n{WAIT_FOR_ACCOUNT}echo there", user=ALICE, env=conf)
        with pytest.raises(FutureTimeoutError):
            waiting.result(3)
        cluster.declare({"enforce": ["associations"], "accounts": [ALICES]})
        assert waiting.result(seconds(60)) == "there\n"
    assert cluster.submit(script="true")


def test_health_checks_may_submit_where_associations_are_enforced(cluster: AccountsCluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES]})
    cluster.joined("ml|alice")
    enforced(cluster)
    cluster.slurm("srun", "--chdir=/", "true")


def gpu_jobs(cluster: AccountsCluster) -> list[str]:
    """The jobs that the prologs have noted on both workers, one for each GPU."""
    shown = [cluster.containers[f"{node}/slurmd"].run("sh", "-c", f"cat {FOLDER_OF_GPUS}/* 2>/dev/null; :") for node in ("gpu-0", "gpu-1")]
    return "".join(shown).split()


def test_metrics_are_what_slurm_says_of_jobs_and_nodes(cluster: AccountsCluster) -> None:
    """The real collector: jobs that run, complete, fail, time out and are cancelled; GPU time is what sacct says, counted once."""
    cluster.declare({"accounts": [ALICES]}, monitoring={})
    cluster.joined("ml|alice")
    wait_for("the prolog", lambda: "slipway-gpu-jobs.sh" in cluster.slurm("scontrol", "show", "config"))
    before = cluster.submit("--gres=gpu:1", script="true")
    cluster.state(before, "COMPLETED")
    settings = Settings(True, 100, {}, checks_collector=("t-slurmctld", ports.CHECKS), interval_s=0.5, accounting_interval_s=0.5)
    collector = cluster.metrics(to_json(settings))

    def page() -> str:
        return collector.run("python3", "-c", GET, f"http://127.0.0.1:{ports.METRICS}/metrics", check=False)

    def gpu_seconds() -> dict[str, float]:
        return of(page(), "slipway_job_gpu_seconds_total")

    wait_for("a reading", lambda: "\nslipway_slurm_up 1\n" in page())
    assert of(page(), "slipway_nodes") == {"gpu/idle": 2}
    late = cluster.submit("--gres=gpu:1", "--time=60")
    cluster.state(late, "RUNNING")
    ended = [
        cluster.submit("--gres=gpu:2", script="sleep 1"),
        cluster.submit("--gres=gpu:1", script="sleep 1; exit 3"),
        cluster.submit("--gres=gpu:1"),
    ]
    cluster.state(ended[2], "RUNNING")
    for job in (late, ended[2]):
        wait_for(f"the GPU of job {job}", lambda job=job: job in gpu_jobs(cluster))
    cluster.slurm("scontrol", "update", f"jobid={late}", "TimeLimit=0")
    waiting = cluster.submit("--gres=gpu:4", "--exclusive", "--nodes=2", "--array=0-4")
    wait_for("a running job", lambda: of(page(), "slipway_jobs").get("main/running", 0) >= 1)
    wait_for("waiting tasks", lambda: of(page(), "slipway_jobs").get("main/pending") == 5)
    assert of(page(), "slipway_account_jobs")["ml/pending"] == 5
    assert of(page(), "slipway_account_gpus")["ml"] >= 1
    assert of(page(), "slipway_gpus")["gpu/allocated"] >= 1
    assert sum(of(page(), "slipway_pending_jobs").values()) == 5
    cluster.slurm("scancel", waiting)
    cluster.state(ended[0], "COMPLETED")
    cluster.slurm("scancel", ended[2])
    cluster.state(late, "TIMEOUT")
    wait_for("all ends", lambda: {"ml/completed", "ml/failed", "ml/cancelled", "ml/timeout"} <= gpu_seconds().keys())
    shown = cluster.slurm("sacct", "--allusers", "-XnP", f"--jobs={','.join([late, *ended])}", "--format=State,ElapsedRaw,ReqTRES")
    assert len(shown.splitlines()) == 4
    said: dict[str, float] = {}
    for state, elapsed, tres in (line.split("|") for line in shown.splitlines()):
        gpus = int(tres.partition("gres/gpu=")[2].partition(",")[0])
        said[f"ml/{state.split()[0].lower()}"] = int(elapsed) * gpus
    assert gpu_seconds() == said
    wait_for("no job on a GPU", lambda: gpu_jobs(cluster) == [])
    assert of(page(), "slipway_job_wait_seconds_count") == {"main": 4}
