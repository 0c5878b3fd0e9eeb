"""`--mail-type` with a real slurmctld and a real SMTP relay (TLS and a login): what arrives, and what happens while the relay is away."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from components.mail import build_settings
from configs.load import load_cluster
from programs.mail.settings import to_json
from tests.support.slurm.directory_server import make_certificates
from tests.support.slurm.image_pods import PROJECT, Machine, wait_for
from tests.support.slurm.image_stack import NAMES, SLURM, STACK
from tests.support.slurm.mail_relay import PASSWORD, USER, read_mails
from tests.support.slurm.refusing_cluster import Cluster as Alices

FOLDER = Path("/var/tmp/slipway-mail")
PODS = {**{pod: names for pod, names in NAMES.items() if pod in {"t-slurmctld-0", "gpu-0"}}, "relay": []}
SMTP = {"host": "relay", "sender": "slurm@example.com", "domain": "example.com", "caSecret": "ca", "credentialsSecret": "login"}
STACK_HERE: dict[str, Any] = {
    **STACK,
    "accounting": {"enabled": False},
    "nodeSets": [{**STACK["nodeSets"][0], "size": 1}],
    "notifications": {"smtp": SMTP},
}


class Cluster(Alices):
    """A worker, slurmctld with its mail container, and a relay."""

    relay: subprocess.Popen[str]

    @property
    def inbox(self) -> Path:
        """Where the relay keeps mails and has its certificate."""
        return self.machine.folder / "inbox"

    def start_relay(self) -> None:
        """The relay, until it listens."""
        command = ["nsenter", f"--net=/run/netns/{self.machine.prefix}relay", sys.executable, "-m", "tests.support.slurm.mail_relay"]
        self.relay = subprocess.Popen([*command, str(self.inbox), "587"], stdout=subprocess.PIPE, text=True, cwd=PROJECT)
        assert self.relay.stdout is not None
        assert self.relay.stdout.readline() == "ready\n"

    def stop_relay(self) -> None:
        self.relay.kill()
        self.relay.wait(30)

    def said(self) -> str:
        return self.containers["t-slurmctld-0/mail"].log

    def await_mail(self, what: str) -> EmailMessage:
        """The mail whose subject has these words."""
        return wait_for(f"mail {what!r}", lambda: [each for each in read_mails(self.inbox) if what in each["Subject"]], 60)[0]


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[Cluster]:
    """All of it, with an idle worker."""
    machine = Machine(FOLDER, image_root, "swml-")
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    cluster = Cluster(machine, stack=STACK_HERE, names=PODS)
    cluster.inbox.mkdir()
    try:
        cluster.prepare()
        make_certificates(cluster.inbox, "relay", machine.addresses["relay"])
        cluster.start_relay()
        for pod in ("t-slurmctld-0", "gpu-0"):
            cluster.munged(pod)
        cluster.slurmctld()
        cluster.reconfigure()
        smtp = load_cluster(STACK_HERE, Path(), "x").notifications.smtp
        assert smtp is not None
        cluster.volume("mail-ca", {"ca.crt": (cluster.inbox / "ca.crt").read_bytes()})
        cluster.volume("mail-credentials", {"username": USER, "password": PASSWORD}, 0o440, SLURM)
        secrets = {f"/etc/slipway/{name}": cluster.path(name) for name in ("mail-ca", "mail-credentials")}
        cluster.mail(to_json(build_settings(smtp)), secrets)
        cluster.slurmd("gpu-0")
        wait_for("an idle worker", lambda: cluster.shell("sinfo --noheader --format=%T") == "idle", deadline_s=90)
        yield cluster
    finally:
        if hasattr(cluster, "relay"):
            cluster.stop_relay()
        machine.keep_logs()
        machine.close()


def test_mail_says_what_became_of_a_job_and_where_its_output_is(cluster: Cluster) -> None:
    cluster.alice("sbatch --wait --mail-type=END,FAIL --job-name='a b' --output=/tmp/out-%j.txt --wrap 'exit 3'")
    mail = cluster.await_mail("(a b) failed")
    job = mail["Subject"].split()[2]
    assert mail["Subject"] == f"[t] Job {job} (a b) failed with exit code 3"
    assert mail["X-For"] == "alice@example.com"
    assert (mail["From"], mail["To"]) == ("slurm@example.com", "alice@example.com")
    lines = [" ".join(line.split()) for line in mail.get_content().splitlines()]
    assert {"State: FAILED", "Exit code: 3", "Nodes: gpu-0", f"Output: /tmp/out-{job}.txt"} <= set(lines)


def test_silent_relay_holds_up_no_job_and_loses_no_mail(cluster: Cluster) -> None:
    cluster.relay.send_signal(signal.SIGSTOP)
    try:
        for name in ("first", "second"):
            cluster.alice(f"sbatch --wait --mail-type=END --mail-user=ada@example.org --job-name={name} --output=/dev/null --wrap true")
        wait_for("an empty queue", lambda: cluster.shell("squeue --noheader") == "")
    finally:
        cluster.relay.send_signal(signal.SIGCONT)
    for name in ("first", "second"):
        assert cluster.await_mail(f"({name}) completed")["X-For"] == "ada@example.org"


def test_mail_of_a_relay_that_was_away_comes_later(cluster: Cluster) -> None:
    cluster.stop_relay()
    cluster.alice("sbatch --wait --mail-type=BEGIN --job-name=patient --output=/dev/null --wrap true")
    wait_for("a word about the relay", lambda: "the relay relay:587 takes no mail" in cluster.said())
    cluster.start_relay()
    assert cluster.await_mail("(patient) started")["X-For"] == "alice@example.com"
    wait_for("good news", lambda: "the relay takes mail again" in cluster.said())


def test_address_that_the_relay_refuses_is_logged_and_holds_up_no_other(cluster: Cluster) -> None:
    for address in ("nobody@example.com", "'x y@example.com'", "ada@example.org"):
        cluster.alice(f"sbatch --wait --mail-type=END --mail-user={address} --job-name=to --output=/dev/null --wrap true")
    assert cluster.await_mail("(to) completed")["X-For"] == "ada@example.org"
    wait_for("a word", lambda: "NOT SENT" in cluster.said() and "550" in cluster.said() and "no mail address" in cluster.said())
    wait_for("an empty spool", lambda: not list((cluster.empty("state", SLURM) / "slurmctld/mail").glob("*.json")))
