"""News of jobs and nodes with a real slurmctld, slurmdbd and a service that takes Slack's format: what arrives, once, and what survives."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.notify import build_receivers
from components.pods import program_command
from configs.load import load_cluster
from programs.mail.spool import Spool
from programs.notify.settings import to_json
from tests.support.slurm.accounts_cluster import ALICES, BOB, AccountsCluster, running
from tests.support.slurm.image_cluster import program_mount
from tests.support.slurm.image_pods import PROJECT, Container, wait_for
from tests.support.slurm.image_stack import SLURM, STACK
from tests.support.slurm.webhook_service import read_posts

FOLDER = Path("/var/tmp/slipway-notify")
SMTP = {"host": "relay", "sender": "slurm@example.com", "domain": "example.com"}
RECEIVERS: list[dict[str, Any]] = [
    {"name": "ml", "urlSecret": "ml", "accounts": ["ml"]},
    {"name": "asked", "urlSecret": "asked", "onlyAsked": True, "kind": "webhook"},
    {"name": "nodes", "urlSecret": "nodes", "events": ["nodeDrain", "nodeResume"]},
    {"name": "mail", "kind": "mail", "to": ["ops@example.com"], "events": ["jobFail"]},
]
NOTIFICATIONS = {"smtp": SMTP, "receivers": RECEIVERS}


class Cluster(AccountsCluster):
    """The cluster, the container that tells, and the service."""

    services: list[subprocess.Popen[str]]

    def inbox(self, receiver: str) -> Path:
        """Where the service keeps what a webhook got."""
        return self.machine.folder / f"inbox-{receiver}"

    def start_services(self) -> None:
        """One service a webhook."""
        for at, name in enumerate(("ml", "asked", "nodes")):
            self.inbox(name).mkdir()
            command = [
                "nsenter",
                f"--net=/run/netns/{self.machine.prefix}hook",
                sys.executable,
                "-m",
                "tests.support.slurm.webhook_service",
            ]
            service = subprocess.Popen([*command, str(self.inbox(name)), str(8000 + at)], stdout=subprocess.PIPE, text=True, cwd=PROJECT)
            self.services.append(service)
            assert service.stdout is not None
            assert service.stdout.readline() == "ready\n"
            self.volume(f"url-{name}", {"url": f"http://hook:{8000 + at}/services/T0/B0/{name}"}, 0o440, SLURM)

    def notify(self) -> Container:
        """The container that tells."""
        pod = "t-slurmctld-0"
        stack = {**STACK, "notifications": NOTIFICATIONS}
        stack["accounting"] = {"accounts": [ALICES]}
        receivers = load_cluster(stack, Path(), "x").notifications.receivers
        self.volume("notify", {"receivers.json": to_json(build_receivers(receivers))})
        mounts = {
            "/etc/slurm": self.path("slurm"),
            "/var/lib/extrausers": self.path("users"),
            "/run/munge": (self.empty(f"{pod}-munge"), True),
            "/var/spool": (self.empty("state", SLURM), False),
            "/etc/slipway/notify-settings": self.path("notify"),
            **{f"/etc/slipway/notify/{name}": self.path(f"url-{name}") for name in ("ml", "asked", "nodes")},
            **program_mount("notify"),
            **program_mount("mail"),
        }
        command = program_command("notify", "t", "/etc/slipway/notify-settings/receivers.json", "0.5")
        env = {"SLURM_CONF": "/etc/slurm/slurm.conf"}
        return self._start(pod, "notify", command, mounts, env, user=SLURM, fs_group=SLURM, read_only=True)

    def texts(self, receiver: str) -> list[str]:
        """What a webhook in Slack's format got."""
        return [post["text"] for post in read_posts(self.inbox(receiver))]

    def drains(self) -> list[dict[str, Any]]:
        """What the webhook that users ask for got of drained nodes."""
        return [post for post in read_posts(self.inbox("asked")) if post["event"] == "jobDrain"]

    def await_text(self, receiver: str, what: str) -> str:
        """The message with these words."""
        return wait_for(f"message {what!r}", lambda: [text for text in self.texts(receiver) if what in text], 60)[0]


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[Cluster]:
    with running(FOLDER, "swnt-", image_root, Cluster, {"hook": []}) as made:
        assert isinstance(made, Cluster)
        made.services = []
        try:
            made.declare({"accounts": [ALICES, {"name": "other", "users": ["bob"]}]}, notifications=NOTIFICATIONS)
            wait_for("the accounts", lambda: {"ml|alice", "other|bob"} <= made.members())
            made.start_services()
            made.notify()
            wait_for("its first round", lambda: (made.empty("state", SLURM) / "slurmctld/notify/state.json").exists(), 60)
            yield made
        finally:
            for service in made.services:
                service.kill()
                service.wait(30)


def test_ended_job_is_told_once_with_state_exit_code_and_output(cluster: Cluster) -> None:
    """The accounts' webhook hears of its own account, a mail address of each failure, and nobody of what ended before."""
    cluster.submit(uid=BOB, script="true")
    job = cluster.submit("--job-name=<!channel> a|b", "--output=/tmp/out-%j", script="exit 3")
    text = cluster.await_text("ml", f"Job {job} ")
    assert text.splitlines()[0] == f"*[t] Job {job} (&lt;!channel&gt; a|b) failed with exit code 3*"
    lines = set(text.splitlines())
    assert {"User: alice", "Account: ml", "State: FAILED", "Exit code: 3", f"Output: /tmp/out-{job}"} <= lines
    mails = Spool(cluster.empty("state", SLURM) / "slurmctld/mail")
    wait_for("a mail", lambda: any(job in mails.read(name).subject for name in mails.names()))
    next_job = cluster.submit(script="true")
    cluster.await_text("ml", f"Job {next_job} ")
    assert [text for text in cluster.texts("ml") if "bob" in text] == []
    assert sum(f"Job {job} " in text for text in cluster.texts("ml")) == 1


def test_array_is_one_message(cluster: Cluster) -> None:
    array = cluster.submit("--array=0-7", "--job-name=sweep", script="exit $(( SLURM_ARRAY_TASK_ID == 5 ))")
    text = cluster.await_text("ml", f"Array job {array} ")
    assert text.splitlines()[0] == f"*[t] Array job {array} (sweep): 7 completed, 1 failed*"
    assert f"One of them: {array}_5 failed with exit code 1" in text
    assert sum(f"Array job {array} " in text or f"Job {array}_" in text for text in cluster.texts("ml")) == 1


def test_user_asks_for_a_receiver_by_a_word_in_the_comment(cluster: Cluster) -> None:
    cluster.submit(script="true")
    job = cluster.submit("--comment=sweep notify:asked", script="true")
    [post] = wait_for("a post", lambda: read_posts(cluster.inbox("asked")), 60)
    assert (post["event"], post["facts"]["job"], post["facts"]["state"]) == ("jobEnd", job, "COMPLETED")


def test_node_out_of_service_is_told_with_its_cause_and_when_it_is_back(cluster: Cluster) -> None:
    cluster.slurm("scontrol", "update", "nodename=gpu-1", "state=drain", "reason=fan 3 <broken>")
    text = cluster.await_text("nodes", "Node gpu-1 takes no jobs")
    assert "Cause: fan 3 &lt;broken&gt;" in text.splitlines()
    cluster.slurm("scontrol", "update", "nodename=gpu-1", "state=resume")
    assert "fan 3" in cluster.await_text("nodes", "Node gpu-1 is back in service")


def test_user_who_asked_hears_once_of_a_drained_node_under_a_running_job(cluster: Cluster) -> None:
    """Also with another reason of the same drain; and the program may be killed in between."""
    quiet = cluster.submit(script="sleep infinity")
    job = cluster.submit("--comment=notify:asked", "--nodelist=gpu-0", script="sleep infinity")
    for each in (quiet, job):
        cluster.state(each, "RUNNING")
    cluster.slurm("scontrol", "update", "nodename=gpu-0", "state=drain", "reason=fan 4 broken")
    drains = wait_for("the news", lambda: cluster.drains(), 60)
    assert [post["title"] for post in drains] == [
        f"Node gpu-0, on which your job {job} runs, was drained: fan 4 broken; the job goes on for now"
    ]
    assert drains[0]["facts"] == {"user": "alice", "cluster": "t", "job": job}
    wait_for("the note of it", lambda: "told asked: Node gpu-0" in cluster.containers["t-slurmctld-0/notify"].log)
    cluster.containers.pop("t-slurmctld-0/notify").stop("KILL")
    cluster.notify()
    cluster.slurm("scontrol", "update", "nodename=gpu-0", "state=drain", "reason=fan 5 broken")
    cluster.await_text("nodes", "fan 5 broken")
    assert cluster.job(job) == "RUNNING"
    cluster.slurm("scancel", quiet, job)
    cluster.slurm("scontrol", "update", "nodename=gpu-0", "state=resume")
    cluster.await_text("nodes", "Node gpu-0 is back in service")
    assert cluster.drains() == drains


def test_kill_and_webhook_that_is_away_lose_no_message(cluster: Cluster) -> None:
    answer = cluster.inbox("ml") / "answer"
    answer.write_text("503")
    first = cluster.submit(script="true")
    wait_for("a failed try", lambda: "ml takes no message: it answers with 503" in cluster.containers["t-slurmctld-0/notify"].log, 60)
    cluster.containers.pop("t-slurmctld-0/notify").stop("KILL")
    second = cluster.submit(script="true")
    cluster.state(second, "COMPLETED")
    answer.unlink()
    log = cluster.notify()
    for job in (first, second):
        cluster.await_text("ml", f"Job {job} ")
    assert "services/T0" not in log.log
