"""Accounts, users, QOS and limits from the config, kept by the real program in the real MariaDB, slurmdbd and slurmctld.

Jobs are those of plain users on real workers. The cluster is one for all tests; each declares what it wants and waits until Slurm has it.
"""

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any

import pytest

from configs.load import load_cluster
from configs.render import users
from local.first_job import ACCOUNT
from tests.slurm.image_cluster import ALICE, NAMES, SLURM, STACK, ImageCluster
from tests.slurm.image_pods import Container, Machine, PodError, wait_for

FOLDER = Path("/var/tmp/slipway-accounts")
PODS = {pod: names for pod, names in NAMES.items() if pod not in {"t-slurmrestd", "t-login"}}
BOB = 10002
KEY = STACK["login"]["users"][0]["sshKeys"][0]
PEOPLE = [{"name": "alice", "uid": ALICE, "sshKeys": [KEY]}, {"name": "bob", "uid": BOB, "sshKeys": [KEY]}]
ENFORCE = ["associations", "limits", "qos", "safe"]
ALICES = {"name": "ml", "users": ["alice"]}
DONE = "all accounts, users and QOS are as the config has them"


class Cluster(ImageCluster):
    """The cluster of this module, with the words that its tests use."""

    def declare(self, accounting: Mapping[str, Any], groups: Mapping[str, Sequence[str]] | None = None, **more: Any) -> None:
        """Writes what a stack with this accounting, these unix groups and these further keys has in its ConfigMaps."""
        stack = copy.deepcopy(STACK)
        groups = groups or {}
        people = [{**each, "groups": [group for group, names in groups.items() if each["name"] in names]} for each in PEOPLE]
        stack["login"] = {"users": people, "groups": [{"name": name, "gid": 20000 + at} for at, name in enumerate(groups)]}
        stack["accounting"] = dict(accounting)
        stack.update(more)
        self.volume("users", users.render(load_cluster(stack, Path(), "Pulumi.test.yaml")))
        self.configure(stack)

    def volume(self, name: str, files: Mapping[str, str | bytes], mode: int = 0o444, group: int = 0) -> Path:
        """As the kubelet does: files that are as they were are not swapped, so slurmctld does not read its own anew."""
        folder = self.machine.folder / f"volume-{name}"
        there = {each: (folder / each).read_bytes() for each in files if (folder / each).exists()}
        wanted = {each: content if isinstance(content, bytes) else content.encode() for each, content in files.items()}
        return folder if folder.exists() and there == wanted else super().volume(name, files, mode, group)

    def slurm(self, *command: str, check: bool = True) -> str:
        """Runs a command as SlurmUser, who may do everything."""
        inside = self.containers["t-slurmctld-0/reconfigure"]
        return inside.run(*command, user=SLURM, check=check, env={"SLURM_CONF": "/etc/slurm/slurm.conf"}).strip()

    def sacctmgr(self, *words: str) -> str:
        """What an administrator does by hand."""
        return self.slurm("sacctmgr", "-i", *words)

    def rows(self, entity: str, columns: str, *more: str) -> set[str]:
        """Rows of `sacctmgr show`, without those that Slurm has from the start."""
        found = self.slurm("sacctmgr", "-nP", "show", entity, *more, f"format={columns}").splitlines()
        return {row for row in found if row.split("|")[0] not in ("root", "normal")}

    def members(self) -> set[str]:
        """`account|user` of all associations."""
        return {row for row in self.rows("assoc", "account,user") if not row.endswith("|")}

    def accounts_there(self) -> set[str]:
        """Names of all accounts."""
        return self.rows("account", "account")

    def qos_there(self) -> set[str]:
        """Names of all QOS but `normal`."""
        return self.rows("qos", "name")

    def submit(self, *options: str, uid: int = ALICE, script: str = "sleep 300") -> str:
        """Submits a job as a user; gives its number. Raises PodError with Slurm's words when it is refused."""
        worker = self.containers["gpu-0/slurmd"]
        command = ["sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--mem=64", *options, f"--wrap={script}"]
        return worker.run(*command, user=uid, env={"SLURM_CONF": "/run/slurm/conf/slurm.conf"}).strip()

    def job(self, job: str, column: str = "%T") -> str:
        """State of a job, or another column of squeue."""
        return self.slurm("squeue", "--noheader", "--states", "all", "--job", job, "--format", column)

    def state(self, job: str, wanted: str) -> None:
        """Waits for a job's state."""
        wait_for(f"{wanted} of job {job}", lambda: self.job(job) == wanted, deadline_s=40)

    def reason(self, job: str, wanted: str) -> None:
        """Waits for why a job is pending."""
        wait_for(f"{wanted} of job {job}", lambda: self.job(job, "%r") == wanted, deadline_s=40)

    @property
    def keeper(self) -> Container:
        """The program's container."""
        return self.containers["t-slurmdbd-0/accounts"]

    def settled(self) -> None:
        """Starts the program anew, and waits until it says that all is done."""
        self.keeper.stop("KILL")
        self.accounts()
        wait_for("the end of its work", lambda: DONE in self.keeper.log, deadline_s=60)

    def changes(self) -> list[str]:
        """What the program has done since it started."""
        lines = [line.removeprefix("accounts: ") for line in self.keeper.log.splitlines()]
        return [line for line in lines if line.split()[0] in ("add", "modify", "delete")]


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[Cluster]:
    """Database, slurmdbd with the program beside it, slurmctld and two workers."""
    machine = Machine(FOLDER, image_root, "swac-")
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    cluster = Cluster(machine, names=PODS)
    try:
        cluster.prepare()
        cluster.declare({"accounts": []})
        for pod in PODS:
            if pod != "t-mariadb-0":
                cluster.munged(pod)
        for start in (cluster.mariadb, cluster.slurmdbd, cluster.accounts, cluster.slurmctld, cluster.reconfigure):
            start()
        for worker in ("gpu-0", "gpu-1"):
            cluster.slurmd(worker)
        wait_for("idle workers", lambda: cluster.slurm("sinfo", "--noheader", "--format", "%D %T") == "2 idle", deadline_s=90)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()


@pytest.fixture(autouse=True)
def empty(cluster: Cluster) -> None:
    """Each test starts without a job and without an account."""
    cluster.declare({"accounts": []})
    cluster.slurm("bash", "-c", "squeue --noheader --format=%i | xargs --no-run-if-empty scancel")
    wait_for("no job", lambda: cluster.slurm("squeue", "--noheader") == "", deadline_s=60)
    cluster.settled()
    wait_for("no enforcement", lambda: "= none" in cluster.slurm("bash", "-c", "scontrol show config | grep Enforce"))


def enforced(cluster: Cluster) -> None:
    wait_for("enforcement", lambda: "= associations" in cluster.slurm("bash", "-c", "scontrol show config | grep Enforce"))


def test_everything_that_can_be_said_is_in_slurm_and_taken_back(cluster: Cluster) -> None:
    shared = {
        "grpTres": "cpu=64,mem=512G,gres/gpu=8,gres/gpu:h100=8,node=2,billing=9",
        "grpTresMins": "cpu=100000,mem=1T",
        "grpTresRunMins": "cpu=50000",
        "grpJobs": 10,
        "grpJobsAccrue": 11,
        "grpSubmitJobs": 12,
        "grpWall": "100-00:00:00",
        "maxTresPerJob": "cpu=32,mem=1500",
        "maxTresPerNode": "cpu=2",
        "maxTresMinsPerJob": "gres/gpu=600",
        "maxWall": "1-12:00:30",
    }
    limits = {**shared, "priority": 5, "maxJobs": 3, "maxJobsAccrue": 4, "maxSubmitJobs": 5}
    qos_limits = {
        **shared,
        "maxTresPerUser": "gres/gpu=4",
        "maxTresPerAccount": "gres/gpu=6",
        "maxTresRunMinsPerUser": "cpu=7",
        "maxTresRunMinsPerAccount": "cpu=8",
        "maxJobsPerUser": 1,
        "maxJobsPerAccount": 2,
        "maxJobsAccruePerUser": 3,
        "maxJobsAccruePerAccount": 4,
        "maxSubmitJobsPerUser": 5,
        "maxSubmitJobsPerAccount": 6,
        "minTresPerJob": "gres/gpu=1",
    }
    high = {
        "name": "high",
        "description": "In a hurry",
        "priority": 100,
        "preempt": ["low", "normal"],
        "preemptMode": "requeue",
        "preemptExemptTime": "00:10:00",
        "graceTimeS": 120,
        "flags": ["NoDecay", "DenyOnLimit"],
        "usageFactor": 2.5,
        "usageThreshold": 0.5,
        "limitFactor": 1.5,
        "limits": qos_limits,
    }
    whole = {"fairshare": 10, "limits": limits, "qos": ["normal", "high"], "defaultQos": "high"}
    accounts = [
        {"name": "vision", "parent": "ml", "users": ["alice"], "perUser": {"alice": whole}},
        {"name": "ml", "description": "Machine Learning", "organization": "Lab", "users": ["bob"], **whole, "fairshare": "parent"},
    ]
    everything = {"enforce": ENFORCE, "accounts": accounts, "qos": [high, {"name": "low"}], "defaultAccount": "guests"}
    preempting: dict[str, Any] = {"slurm": {"cgroupVersion": "auto", "settings": {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}}}
    cluster.declare(everything, **preempting)
    cluster.settled()
    cluster.settled()
    assert cluster.changes() == []  # what Slurm shows is read back as what was wanted
    row = "vision|ml|1-12:01:00|cpu=32,mem=1500M|billing=9,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=512G,node=2|high,normal|high"
    columns = "account,parentname,maxwall,maxtres,grptres,qos,defaultqos"
    [alice] = cluster.rows("assoc", columns, "WOPLimits", "where", "user=alice")
    assert alice == row.replace("|ml|", "||")
    assert cluster.rows("account", "account,description,organization") >= {
        "ml|machine learning|lab",
        "vision|vision|ml",
        "guests|guests|guests",
    }
    bare = [{"name": "vision", "users": ["alice"]}, {"name": "ml", "users": ["bob"]}]
    cluster.declare({"accounts": bare, "qos": [{"name": "high"}, {"name": "low"}]})
    cluster.settled()
    cluster.settled()
    assert "vision|root|||||" in cluster.rows("assoc", columns, "WOPLimits")
    assert cluster.changes() == []
    assert len(cluster.rows("qos", "priority,preempt,flags,grptres,maxwall,gracetime,usagefactor,maxjobspu,preemptmode")) == 1


def test_limits_are_slurms_own_reasons(cluster: Cluster) -> None:
    account = {**ALICES, "limits": {"maxTresPerJob": "gres/gpu=1", "maxJobs": 1, "maxSubmitJobs": 3}}
    cluster.declare({"enforce": ENFORCE, "accounts": [account], "qos": [{"name": "strict", "flags": ["DenyOnLimit"]}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    enforced(cluster)
    cluster.reason(cluster.submit("--gres=gpu:2"), "AssocMaxGRESPerJob")
    cluster.state(cluster.submit("--gres=gpu:1"), "RUNNING")
    cluster.reason(cluster.submit(), "AssocMaxJobsLimit")
    with pytest.raises(PodError, match="AssocMaxSubmitJobLimit"):
        cluster.submit()
    with pytest.raises(PodError, match="Invalid account"):
        cluster.submit(uid=BOB)


def test_partition_takes_the_accounts_and_the_limits_of_its_qos(cluster: Cluster) -> None:
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
    wait_for("the accounts", lambda: {"ml|alice", "vision|alice", "other|bob"} <= cluster.members())
    cluster.state(cluster.submit("--partition=more", "--cpus-per-task=2"), "RUNNING")
    cluster.reason(cluster.submit("--partition=more", "--account=vision", "--cpus-per-task=2"), "QOSMaxCpuPerUserLimit")
    with pytest.raises(PodError, match="Invalid account"):
        cluster.submit("--partition=more", uid=BOB)
    # The QOS goes only once the partition has let go of it.
    cluster.slurm("scancel", "--user=alice")


def test_fair_share_is_what_the_config_says(cluster: Cluster) -> None:
    accounts = [{**ALICES, "fairshare": 30}, {"name": "vision", "users": ["bob"], "fairshare": 70, "perUser": {"bob": {"fairshare": 5}}}]
    cluster.declare({"accounts": accounts})
    wait_for("the accounts", lambda: {"ml|alice", "vision|bob"} <= cluster.members())

    def shares() -> set[str]:
        return {row.strip() for row in cluster.slurm("sshare", "-nPa", "--format=Account,User,RawShares,NormShares").splitlines()}

    wait_for("shares", lambda: {"ml||30|0.297030", "vision||70|0.693069", "vision|bob|5|1.000000"} <= shares())


def test_job_of_a_higher_qos_takes_the_place_of_a_lower(cluster: Cluster) -> None:
    settings = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
    both = ["normal", "urgent"]
    accounting = {
        "enforce": ENFORCE,
        "accounts": [{**ALICES, "qos": both}],
        "qos": [{"name": "urgent", "priority": 10, "preempt": ["normal"]}],
    }
    cluster.declare(accounting, slurm={"cgroupVersion": "auto", "settings": settings})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    enforced(cluster)
    lower = [cluster.submit("--exclusive") for _ in range(2)]
    for job in lower:
        cluster.state(job, "RUNNING")
    cluster.state(cluster.submit("--exclusive", "--qos=urgent"), "RUNNING")
    assert sorted(cluster.job(job) for job in lower) == ["PENDING", "RUNNING"]


def test_changed_config_is_in_slurm_within_seconds(cluster: Cluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES]})
    wait_for("the account", lambda: "ml|alice" in cluster.members(), deadline_s=10)
    cluster.declare({"enforce": ENFORCE, "accounts": [{**ALICES, "limits": {"maxJobs": 7}}]})
    wait_for("the limit", lambda: "ml||7" in cluster.rows("assoc", "account,user,maxjobs", "WOPLimits"), deadline_s=10)


def test_account_with_a_running_job_goes_after_it_and_takes_no_new_one(cluster: Cluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES], "qos": [{"name": "short"}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    enforced(cluster)
    job = cluster.submit(script="trap 'exit 0' USR1; sleep 300 & wait")
    cluster.state(job, "RUNNING")
    waiting = cluster.submit("--begin=now+1hour")
    cluster.declare({"enforce": ENFORCE, "accounts": []})
    wait_for("a clear line", lambda: "alice in account ml: not removed yet, they have jobs" in cluster.keeper.log)
    with pytest.raises(PodError, match="AssocMaxSubmitJobLimit"):
        cluster.submit()
    assert cluster.job(job) == "RUNNING"
    cluster.slurm("scancel", "--batch", "--signal=USR1", job)
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


def test_qos_with_a_running_job_goes_after_it(cluster: Cluster) -> None:
    account = {**ALICES, "qos": ["normal", "short"]}
    cluster.declare({"enforce": ENFORCE, "accounts": [account], "qos": [{"name": "short"}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    enforced(cluster)
    job = cluster.submit("--qos=short")
    cluster.state(job, "RUNNING")
    cluster.declare({"enforce": ENFORCE, "accounts": [{**ALICES, "qos": ["normal"]}]})
    wait_for("a clear line", lambda: "QOS short: not removed yet, jobs or partitions have it" in cluster.keeper.log)
    assert cluster.job(job) == "RUNNING"
    cluster.slurm("scancel", job)
    wait_for("no QOS", lambda: cluster.qos_there() == set(), deadline_s=30)


def test_what_an_administrator_made_stays(cluster: Cluster) -> None:
    cluster.sacctmgr("add", "account", "byhand", "MaxJobs=4")
    cluster.sacctmgr("add", "qos", "handmade", "Priority=7")
    cluster.sacctmgr("add", "user", "bob", "account=byhand", "MaxJobs=2")
    cluster.declare({"accounts": [ALICES, {"name": "vision"}], "qos": [{"name": "ours"}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.sacctmgr("add", "user", "bob", "account=vision")
    cluster.declare({"accounts": []})
    wait_for("our account's end", lambda: cluster.accounts_there() == {"byhand", "vision"})
    wait_for("our QOS' end", lambda: cluster.qos_there() == {"handmade"})
    wait_for("a clear line", lambda: "account vision: stays, others have put into it: user bob" in cluster.keeper.log)
    shown = cluster.rows("assoc", "account,user,maxjobs", "WOPLimits")
    assert shown == {"byhand||4", "byhand|bob|2", "vision||", "vision|bob|"}
    assert cluster.rows("qos", "name,priority") == {"handmade|7"}
    cluster.sacctmgr("delete", "user", "where", "name=bob")
    wait_for("the end of vision", lambda: cluster.accounts_there() == {"byhand"}, deadline_s=45)
    cluster.sacctmgr("delete", "account", "byhand")
    cluster.sacctmgr("delete", "qos", "handmade")


def test_what_an_administrator_changed_of_ours_is_put_right(cluster: Cluster) -> None:
    cluster.declare({"accounts": [{**ALICES, "fairshare": 5}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.sacctmgr("modify", "account", "ml", "set", "Fairshare=9", "MaxJobs=1")
    cluster.sacctmgr("delete", "user", "alice", "account=ml")
    wait_for(
        "the config's", lambda: {"ml||5|", "ml|alice|1|"} == cluster.rows("assoc", "account,user,share,maxjobs", "WOPLimits"), deadline_s=45
    )


def test_outage_of_slurmdbd_is_told_once_and_ends_by_itself(cluster: Cluster) -> None:
    cluster.containers["t-slurmdbd-0/slurmdbd"].stop()
    try:
        cluster.declare({"accounts": [ALICES]})
        wait_for("a clear line", lambda: "slurmdbd does not answer" in cluster.keeper.log, deadline_s=60)
        wait_for("further tries", lambda: time.time() - (cluster.keeper.bundle / "log").stat().st_mtime > 12, deadline_s=60)
        assert cluster.keeper.log.count("slurmdbd does not answer") == 1
    finally:
        cluster.slurmdbd()
    wait_for("the account", lambda: "ml|alice" in cluster.members(), deadline_s=60)


def test_nothing_goes_while_slurmctld_is_silent(cluster: Cluster) -> None:
    cluster.declare({"accounts": [ALICES]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.containers["t-slurmctld-0/slurmctld"].stop()
    try:
        cluster.declare({"accounts": []})
        wait_for("a clear line", lambda: "slurmctld does not answer, so everything counts as in use" in cluster.keeper.log, deadline_s=90)
        assert "ml|alice" in cluster.members()
    finally:
        cluster.slurmctld()
    wait_for("no account", lambda: cluster.accounts_there() == set(), deadline_s=90)


def test_program_killed_before_any_command_is_finished_by_its_next_run(cluster: Cluster) -> None:
    """A stand-in for sacctmgr stops the program before its n-th change; what it passes on is the real one's work."""
    script = FOLDER / "sacctmgr"
    script.write_text(
        "#!/bin/bash\n"
        "if [[ $1 == -i ]]; then echo x >>/tmp/count; [[ $(wc -l </tmp/count) -le $(</tmp/most) ]] || { touch /tmp/held; sleep 600; }; fi\n"
        'exec /usr/bin/sacctmgr "$@"\n'
    )
    script.chmod(0o755)
    tmp = FOLDER / "volume-t-slurmdbd-0-accounts-tmp"
    wanted: dict[str, Any] = {
        "enforce": ["associations"],
        "accounts": [{**ALICES, "fairshare": 4}, {"name": "vision", "parent": "ml", "users": ["alice", "bob"]}],
        "qos": [{"name": "high"}],
    }
    nothing: dict[str, Any] = {"accounts": []}
    for accounting, members in ((wanted, {"ml|alice", "vision|alice", "vision|bob"}), (nothing, set[str]())):
        cluster.keeper.stop("KILL")
        cluster.declare(accounting)
        kills = 0
        for most in range(20):
            for name in ("count", "held"):
                (tmp / name).unlink(missing_ok=True)
            (tmp / "most").write_text("1" if most else "0")  # one more command each time, and at first none
            program = cluster.accounts({"/usr/local/sbin/sacctmgr": (script, True)})
            wait_for("an end", lambda: (tmp / "held").exists() or DONE in cluster.keeper.log, deadline_s=60)
            if DONE in program.log:
                break
            kills += 1
            program.stop("KILL")
        assert kills > 3
        assert cluster.members() == members
    assert (cluster.accounts_there(), cluster.qos_there()) == (set(), set())


def test_users_follow_their_unix_group(cluster: Cluster) -> None:
    accounting = {"accounts": [{"name": "vision", "groups": ["research"]}]}
    cluster.declare(accounting, groups={"research": ["alice"]})
    wait_for("alice", lambda: cluster.members() == {"vision|alice"})
    cluster.declare(accounting, groups={"research": ["bob"]})
    wait_for("bob instead", lambda: cluster.members() == {"vision|bob"}, deadline_s=45)


def test_users_without_an_account_have_the_default_one(cluster: Cluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES], "defaultAccount": "guests"})
    wait_for("the accounts", lambda: cluster.members() == {"ml|alice", "guests|bob"})
    enforced(cluster)
    job = cluster.submit(uid=BOB)
    cluster.state(job, "RUNNING")
    assert cluster.job(job, "%a") == "guests"


def test_enforcement_ends_no_running_job_and_holds_waiting_ones_until_they_are_given_an_account(cluster: Cluster) -> None:
    running = [cluster.submit("--exclusive") for _ in range(2)]
    for job in running:
        cluster.state(job, "RUNNING")
    waiting = cluster.submit("--exclusive")
    cluster.declare({"enforce": ENFORCE, "accounts": []})
    enforced(cluster)
    cluster.reason(waiting, "InvalidAccount")
    assert [cluster.job(job) for job in running] == ["RUNNING", "RUNNING"]
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.slurm("scancel", *running)
    # A job from before has no account, and Slurm gives it none by itself.
    cluster.slurm("scontrol", "update", f"JobId={waiting}", "Account=ml")
    cluster.state(waiting, "RUNNING")


def test_first_jobs_wait_until_their_user_has_an_account(cluster: Cluster) -> None:
    """What `make up` does before its jobs: in a new cluster slurmctld is there before the accounts are."""
    cluster.declare({"enforce": ["associations"], "accounts": []})
    enforced(cluster)
    with pytest.raises(PodError, match="Invalid account"):
        cluster.submit(script="true")
    worker = cluster.containers["gpu-0/slurmd"]
    with ThreadPoolExecutor() as pool:
        conf = {"SLURM_CONF": "/run/slurm/conf/slurm.conf"}
        waiting = pool.submit(worker.run, "bash", "-c", f"set -e\n{ACCOUNT}echo there", user=ALICE, env=conf)
        with pytest.raises(FutureTimeoutError):
            waiting.result(3)
        cluster.declare({"enforce": ["associations"], "accounts": [ALICES]})
        assert waiting.result(60) == "there\n"
    assert cluster.submit(script="true")


def test_health_checks_may_submit_where_associations_are_enforced(cluster: Cluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    enforced(cluster)
    cluster.slurm("srun", "--chdir=/", "true")


def test_two_thousand_users_in_a_hundred_accounts(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    people = [f"user{number}" for number in range(2000)]
    accounts = [{"name": f"account{number}", "fairshare": number + 1} for number in range(100)]
    stack = copy.deepcopy(STACK)
    stack["login"]["users"] = [{"name": name, "uid": 20000 + at, "sshKeys": [KEY]} for at, name in enumerate(people)]
    stack["accounting"] = {"accounts": [{**account, "users": people[at::100]} for at, account in enumerate(accounts)]}
    began = time.monotonic()
    cluster.configure(stack)
    wait_for("all users", lambda: len(cluster.members()) == 2000, deadline_s=300)
    filled = time.monotonic() - began
    cluster.keeper.stop("KILL")
    began = time.monotonic()
    cluster.accounts()
    wait_for("an unchanged tick", lambda: DONE in cluster.keeper.log, deadline_s=60, pause_s=0.02)
    unchanged = time.monotonic() - began
    assert cluster.changes() == []
    began = time.monotonic()
    cluster.declare({"accounts": []})
    wait_for("no accounts", lambda: cluster.accounts_there() == set(), deadline_s=300)
    emptied = time.monotonic() - began
    with capsys.disabled():
        print(f"\n2,000 users in 100 accounts: first fill {filled:.1f} s, unchanged tick {unchanged:.2f} s, all away {emptied:.1f} s")
    assert filled < 120
    assert unchanged < 20
