"""A home for users on the real cluster, with all that the dev stack leaves out: a directory, accounts, two login pods, backups.

One deployment for all tests here. They are the last ones, by name: putting all back would disturb others for minutes, and is left to the
session that begins next with this cluster (DevStack.mend).
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.dev_stack import KEY, NODE_PORT, DevStack, eventually
from tests.cluster.guides import commands, run
from tests.patience import patience
from tests.slurm.directory_server import BASE, PASSWORD, PEOPLE, READER, DirectoryServer

FOLDER = Path("/var/tmp/slipway-cluster-ldap")
BACKUPS = Path("/var/lib/slipway/dev/test-backup")
CONFIG: dict[str, Any] = {
    "login.replicas": 2,
    "login.banner": "Welcome to the test.\n",
    "accounting.enforce": ["associations", "limits", "safe"],
    "accounting.accounts": [{"name": "ml", "users": ["alice"], "fairshare": 5, "limits": {"maxTresPerJob": "cpu=1"}}],
    "accounting.defaultAccount": "guests",
    "backup": {"volume": {"hostPath": str(BACKUPS)}, "stateIntervalS": 10},
}


@dataclass
class Home:
    """The stack with its directory; what was configured last is kept, for changes to come."""

    stack: DevStack
    directory: DirectoryServer
    config: dict[str, Any]

    def up(self, **changes: Any) -> None:
        """Deploys the stack with further changes, by their keys with `__` for dots."""
        self.config |= {key.replace("__", "."): value for key, value in changes.items()}
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in self.config.items()}
        settings = [f"cluster.{key}={text}" for key, text in texts.items()]
        self.stack.slipway("up", *(word for setting in settings for word in ("--config", setting)), timeout_s=900)


@pytest.fixture(scope="module")
def home(deployed: DevStack) -> Iterator[Home]:
    """LDAP with ada, accounts for alice and for guests, two login pods, backups."""
    for folder in (FOLDER, BACKUPS):
        shutil.rmtree(folder, ignore_errors=True)
    FOLDER.mkdir(mode=0o755)
    deployed.ready()
    directory = DirectoryServer(FOLDER / "slapd", "slipway-system", deployed.address, "ldap.example.test")
    directory.prepare()
    for uid, name in enumerate(("ada", "grace"), 12001):  # an answer without any user would not be believed
        directory.add_user(name, uid, KEY.with_suffix(".pub").read_text().strip())
    secrets = {"ldap-ca": f"--from-file=ca.crt={directory.folder / 'ca.crt'}", "ldap-reader": f"--from-literal=password={PASSWORD}"}
    for name, file in secrets.items():
        deployed.kubectl("delete", "secret", name, "--ignore-not-found")
        deployed.kubectl("create", "secret", "generic", name, file)
    ldap = {
        "uris": [f"ldaps://{deployed.address}:{directory.port}"],
        "baseDn": BASE,
        "caSecret": "ldap-ca",
        "bindDn": READER,
        "bindSecret": "ldap-reader",
        "refreshS": 5,
    }
    made = Home(deployed, directory, {**CONFIG, "login.ldap": ldap})
    try:
        made.up()
        deployed.wait_until_settled(400)
        # A job that alice submits before would wait for ever, as one of an account that her partition does not take any more.
        eventually("alice's account", lambda: "ml|alice|" in _shares(deployed), 60)
        yield made
    finally:
        directory.kill()
        deployed.slurm("scancel --user=alice; scancel --user=carol; scancel --user=ada", check=False)


def test_directory_user_logs_in_runs_a_job_and_is_removed_within_a_minute(home: Home) -> None:
    stack = home.stack
    assert eventually("ada's login", lambda: stack.ssh("id -un", "ada"), 60) == "ada\n"
    assert eventually("her job", lambda: stack.ssh("srun --nodelist=cpu-0 id -un", "ada"), 60) == "ada\n"
    assert "ada:x:12001:" in stack.slurm("getent passwd ada")
    home.directory.delete(f"uid=ada,{PEOPLE}")
    eventually("ada out", lambda: "Permission denied" in _refusal(stack, "ada"), 60)
    assert stack.ssh("id -un") == "alice\n"
    home.directory.add_user("ada", 12001, KEY.with_suffix(".pub").read_text().strip())
    eventually("ada in again", lambda: stack.ssh("id -un", "ada") == "ada\n", 60)


def test_silent_directory_changes_nothing_for_who_is_known(home: Home) -> None:
    home.directory.kill()
    eventually("not ready", lambda: not home.stack.get("deployment", "dev-identity")["status"].get("readyReplicas"), 120)
    assert home.stack.ssh("srun --nodelist=cpu-0 id -un", "ada") == "ada\n"
    home.directory.start()
    eventually("ready", lambda: home.stack.get("deployment", "dev-identity")["status"].get("readyReplicas") == 1, 120)


def test_accounts_and_their_limits_are_those_of_the_config(home: Home) -> None:
    stack = home.stack
    assert "ml||5|" in _shares(stack)
    assert "ml|alice|" in _shares(stack)
    assert stack.ssh("srun --nodelist=cpu-0 bash -c 'echo $SLURM_JOB_ACCOUNT'") == "ml\n"
    assert stack.ssh("srun --nodelist=cpu-0 bash -c 'echo $SLURM_JOB_ACCOUNT'", "carol") == "guests\n"
    job = stack.submit("#!/bin/bash\ntrue\n", "--nodes=2", "--output=/dev/null")
    eventually("held by the limit", lambda: "AssocMaxCpuPerJobLimit" in stack.slurm(f"squeue -h -j {job} -o %r"), 60)
    stack.slurm(f"scancel {job}")


def test_commands_of_the_guide_work_as_they_stand(home: Home) -> None:
    for command in commands("docs/users.md"):
        if "create secret" not in command:  # done for the deployment
            assert run(home.stack, command)


def test_killed_login_pod_drops_its_own_sessions_and_no_other(home: Home) -> None:
    stack = home.stack
    sessions: dict[str, subprocess.Popen[str]] = {}
    while len(sessions) < 2:  # the Service picks one
        session = _session(stack)
        assert session.stdout is not None
        pod = logins(stack)[session.stdout.readline().split()[0]]
        if pod in sessions:
            session.kill()
        else:
            sessions[pod] = session
    (gone, its), (_, other) = sessions.items()
    stack.kubectl("delete", "pod", gone, "--force", "--grace-period=0")
    its.wait(60 * patience())
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write("still here\n")
    other.stdin.flush()
    assert other.stdout.readline() == "still here\n"
    other.kill()
    eventually(
        "two pods again", lambda: stack.kubectl("get", "deployment", "dev-login", "-o", "jsonpath={.status.readyReplicas}") == "2", 120
    )


def test_ssh_to_a_node_goes_where_a_job_runs_and_nowhere_else(home: Home, tmp_path: Path) -> None:
    stack = home.stack
    job = stack.submit("#!/bin/bash\nsleep infinity\n", "--nodelist=cpu-1", "--output=/dev/null")
    stack.wait_for_job(job, "RUNNING")
    eventually("a way in", lambda: stack.ssh("ssh cpu-1 'hostname; echo $SLURM_JOB_ID'").split() == ["cpu-1", str(job)], 60)
    assert "no active jobs on this node" in stack.ssh("ssh cpu-0 true 2>&1; true")
    assert "no active jobs on this node" in stack.ssh("ssh cpu-1 true 2>&1; true", "carol")
    settings = tmp_path / "config"
    settings.write_text(f"Host *\n IdentityFile {KEY}\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n")
    assert stack.run("ssh", "-F", str(settings), "-J", f"alice@{stack.address}:{NODE_PORT}", "alice@cpu-1", "hostname").stdout == "cpu-1\n"
    stack.slurm(f"scancel {job}")
    stack.wait_until_idle()


def _shares(stack: DevStack) -> str:
    """What sshare says of alice's account."""
    return stack.ssh("sshare -nP -o Account,User,RawShares,LevelFS | grep '^ *ml'").replace(" ", "")


def _refusal(stack: DevStack, user: str) -> str:
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", f"ConnectTimeout={5 * patience():.0f}")
    words = [word for option in options for word in ("-o", option)]
    return stack.run("ssh", "-i", str(KEY), "-p", NODE_PORT, *words, f"{user}@{stack.address}", "true", check=False).stderr


def logins(stack: DevStack) -> dict[str, str]:
    """The login pods by their addresses: all have one host name."""
    pods = stack.get("pods", labels="app.kubernetes.io/component=login")["items"]
    return {pod["status"].get("podIP", ""): pod["metadata"]["name"] for pod in pods}


def _session(stack: DevStack) -> subprocess.Popen[str]:
    """A session of alice's that says its host's address, and then what it hears."""
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    command = ["ssh", "-i", str(KEY), "-p", NODE_PORT, *(word for option in options for word in ("-o", option)), f"alice@{stack.address}"]
    return subprocess.Popen([*command, "hostname -I; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
