"""A Slurm cluster with a database and two workers, whose accounts the real program keeps as a config has them."""

import copy
import re
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from configs.load import load_cluster
from configs.render import users
from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import Container, Machine, wait_for
from tests.support.slurm.image_stack import ALICE, NAMES, STACK

PODS = {pod: names for pod, names in NAMES.items() if pod not in {"t-slurmrestd", "t-login"}}
BOB = 10002
KEY = STACK["login"]["users"][0]["sshKeys"][0]
PEOPLE = [{"name": "alice", "uid": ALICE, "sshKeys": [KEY]}, {"name": "bob", "uid": BOB, "sshKeys": [KEY]}]
ENFORCE = ["associations", "limits", "qos", "safe"]
ALICES = {"name": "ml", "users": ["alice"]}
DONE = "all accounts, users and QOS are as the config has them"
FOLDER = Path("/var/tmp/slipway-accounts")


class AccountsCluster(ImageCluster):
    """The cluster, with the words that its tests use."""

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

    def joined(self, *members: str) -> None:
        """Waits for these associations, `account|user`, and until slurmctld has their users' default accounts, without which it refuses a
        job: it hears of them a moment after the database."""
        users = {each.partition("|")[2] for each in members}

        def are_known() -> bool:
            shown = self.slurm("scontrol", "show", "assoc_mgr", "flags=users")
            return {*members} <= self.members() and users <= {*re.findall(r"UserName=(\w+)\S* DefAccount=\w", shown)}

        wait_for(f"the members {', '.join(members)}", are_known)

    def accounts_there(self) -> set[str]:
        """Names of all accounts."""
        return self.rows("account", "account")

    def qos_there(self) -> set[str]:
        """Names of all QOS but `normal`."""
        return self.rows("qos", "name")

    def submit(self, *options: str, uid: int = ALICE, script: str = "sleep infinity") -> str:
        """Submits a job as a user; gives its number. Raises PodError with Slurm's words when it is refused."""
        worker = self.containers["gpu-0/slurmd"]
        command = ["sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--mem=64", *options, f"--wrap={script}"]
        return worker.run(*command, user=uid, env={"SLURM_CONF": "/run/slurm/conf/slurm.conf"}).split()[0]  # warnings come after it

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

    def make_empty(self) -> None:
        """As each test starts: without a job and without an account."""
        self.declare({"accounts": []})
        self.cancel_all()
        wait_for("no job", lambda: self.slurm("squeue", "--noheader") == "", deadline_s=60)
        self.settled()
        wait_for("no enforcement", lambda: "= none" in self.slurm("bash", "-c", "scontrol show config | grep Enforce"))

    def changes(self) -> list[str]:
        """What the program has done since it started."""
        lines = [line.removeprefix("accounts: ") for line in self.keeper.log.splitlines()]
        return [line for line in lines if line.split()[0] in ("add", "modify", "delete")]


def enforced(cluster: AccountsCluster) -> None:
    wait_for("enforcement", lambda: "= associations" in cluster.slurm("bash", "-c", "scontrol show config | grep Enforce"))


@contextmanager
def running(
    folder: Path, prefix: str, image: Path, kind: type[AccountsCluster] = AccountsCluster, more: Mapping[str, Sequence[str]] | None = None
) -> Generator[AccountsCluster]:
    """Database, slurmdbd with the program beside it, slurmctld and two workers; and away again. `more` are the names of further pods."""
    machine = Machine(folder, image, prefix)
    machine.close()  # what a killed run left
    folder.mkdir(mode=0o755)
    cluster = kind(machine, names={**PODS, **(more or {})})
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


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[AccountsCluster]:
    with running(FOLDER, "swac-", image_root) as made:
        yield made


@pytest.fixture(autouse=True)
def empty(cluster: AccountsCluster) -> None:
    cluster.make_empty()


def fill_and_empty(cluster: AccountsCluster, users: int, accounts: int) -> str:
    """Declares many users in many accounts, has a killed program find nothing to do, and takes all away again; gives the times."""
    people = [f"user{number}" for number in range(users)]
    stack = copy.deepcopy(STACK)
    stack["login"]["users"] = [{"name": name, "uid": 20000 + at, "sshKeys": [KEY]} for at, name in enumerate(people)]
    made = [{"name": f"account{at}", "fairshare": at + 1, "users": people[at::accounts]} for at in range(accounts)]
    stack["accounting"] = {"accounts": made}
    began = time.monotonic()
    cluster.configure(stack)
    wait_for("all users", lambda: len(cluster.members()) == users, deadline_s=300)
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
    return f"{users} users in {accounts} accounts: first fill {filled:.1f} s, unchanged tick {unchanged:.2f} s, all away {emptied:.1f} s"
