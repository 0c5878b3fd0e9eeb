"""A home for users on the real cluster, with all that the dev stack leaves out: a directory, accounts, two login pods, backups.

One deployment for all tests here. They are the last ones, by name: putting all back would disturb others for minutes, and is left to the
session that begins next with this cluster (DevStack.mend).
"""

import subprocess
from pathlib import Path

from tests.support.cluster.dev_stack import KEY, NODE_PORT, DevStack, eventually
from tests.support.cluster.guides import commands, run
from tests.support.cluster.home import Home, home, shares
from tests.support.patience import patience
from tests.support.slurm.directory_server import PEOPLE

FIXTURES = (home,)


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
    assert "ml||5|" in shares(stack)
    assert "ml|alice|" in shares(stack)
    assert stack.ssh("srun --nodelist=cpu-0 bash -c 'echo $SLURM_JOB_ACCOUNT'") == "ml\n"
    assert stack.ssh("srun --nodelist=cpu-0 bash -c 'echo $SLURM_JOB_ACCOUNT'", "carol") == "guests\n"
    job = stack.submit("#!/bin/bash\ntrue\n", "--nodes=2", "--output=/dev/null")
    eventually("held by the limit", lambda: "AssocMaxCpuPerJobLimit" in stack.slurm(f"squeue -h -j {job} -o %r"), 60)
    stack.slurm(f"scancel {job}")


def test_commands_of_the_guides_work_as_they_stand(home: Home) -> None:
    for command in (*commands("docs/use/logins.md"), *commands("docs/operate/users.md")):
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
