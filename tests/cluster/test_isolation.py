"""What a plain user can try against the cluster, from a login session and from a job. Each is refused; others: docs/explain/security.md.

What needs two users on one node is in tests/slurm/test_isolation.py, and the roots are in tests/slurm/test_shared_root.py.
"""

import shlex
from collections.abc import Iterator

import pytest

from tests.support.cluster.dev_stack import DevStack

FETCH = "curl --silent --insecure --max-time 30 --output /dev/null --write-out '%{http_code}'"
HELLO = r"""
import socket, sys
connection = socket.create_connection(("dev-mariadb", 3306), 30)
connection.recv(4096)
hello = (0x8200).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + b"\x21" + bytes(23) + sys.argv[1].encode() + bytes(2)
connection.sendall(len(hello).to_bytes(3, "little") + b"\x01" + hello)
print(connection.recv(4096))
"""
"""A login at the database without a password, in MariaDB's protocol: the root has no client of it."""
DATABASE = f"python3 -c {shlex.quote(HELLO)}"


def as_user(name: str) -> str:
    """curl's words for slurmrestd with the caller's own token, in the name of a user."""
    token = "$(scontrol token | cut -d= -f2)"
    return f"-H X-SLURM-USER-NAME:{name} -H X-SLURM-USER-TOKEN:{token} http://dev-slurmrestd:6820/slurm/v0.0.45/jobs/"


ABSENT = "No such file|Permission denied"
LIVE_KEY = "/run/slipway/ssh/ssh_host_ed25519_key"
"""What sshd reads, in login pods and in workers."""
ATTEMPTS = [
    pytest.param("ls /var/run/secrets/kubernetes.io", "No such file", id="a token of Kubernetes"),
    pytest.param(f"{FETCH} https://kubernetes.default.svc/api/v1/namespaces/slurm/secrets", "403", id="the Kubernetes API"),
    pytest.param(f"{FETCH} https://$NODE:10250/pods", "401", id="the kubelet"),
    pytest.param(f"{FETCH} http://dev-slurmrestd:6820/slurm/v0.0.45/jobs/", "401", id="slurmrestd without a token"),
    pytest.param(f"{FETCH} {as_user('slurm')}", "511", id="slurmrestd as somebody else"),
    pytest.param(f"{DATABASE} slurm", "Access denied", id="the database"),
    pytest.param(f"{DATABASE} root", "Access denied|is not allowed to connect", id="the database as its root"),
    pytest.param("cat /etc/slipway/munge/munge.key", ABSENT, id="the key of munge"),
    pytest.param("cat /var/lib/munge/munge.key", ABSENT, id="the key that munged has read"),
    pytest.param("cat /etc/slipway/jwt/jwt_hs256.key", ABSENT, id="the key of tokens"),
    pytest.param("cat /etc/slipway/host-keys/ssh_host_ed25519_key", ABSENT, id="the host key of login pods, as it comes"),
    pytest.param("cat /etc/slipway/node-host-keys/ssh_host_ed25519_key", ABSENT, id="the host key of workers, as it comes"),
    pytest.param(f"cat {LIVE_KEY}", ABSENT, id="the host key that sshd has read"),
    pytest.param(f"cat /proc/$(pgrep -o -x sshd)/root{LIVE_KEY}", "Permission denied", id="the host key, by sshd's own root"),
    pytest.param("cat /home/alice/private", "Permission denied", id="another's home"),
    pytest.param("scontrol write batch_script $JOB -", "Invalid user id", id="another's job script"),
    pytest.param("scancel $JOB", "Access/permission denied", id="cancel another's job"),
    pytest.param("scontrol update jobid=$JOB timelimit=1", "Invalid user id", id="change another's job"),
    pytest.param("srun --jobid=$JOB --overlap env", "Access/permission denied", id="a step in another's job"),
    pytest.param("scontrol update nodename=cpu-0 state=drain reason=x", "Invalid user id", id="drain a node"),
    pytest.param("sbatch --uid=alice --wrap true", "root", id="a job as somebody else"),
    pytest.param("sacctmgr -i add account mine", "Only admins", id="an account of one's own"),
    pytest.param("sudo -n true", "password is required|no new privileges|effective uid is not 0", id="sudo"),
]
PLACES = ("login", "job")


@pytest.fixture(scope="module")
def answers(deployed: DevStack) -> Iterator[dict[tuple[str, str], str]]:
    """What Carol hears to every attempt in each place, while Alice's job runs with a secret in its environment, its script and her home."""
    stack = deployed
    stack.ssh("echo hunter2 > private; chmod 600 private")
    job = stack.submit("#!/bin/bash\n# hunter2\nsleep infinity\n", "--nodelist=cpu-0", "--export=ALL,TOKEN=hunter2")
    stack.wait_for_job(job, "RUNNING")
    attempts = [str(one.values[0]) for one in ATTEMPTS]
    script = "\n".join([f"JOB={job} NODE={stack.address}", *(f"{{ {one}; }} 2>&1 </dev/null; printf '\\f'" for one in attempts)])
    found: dict[tuple[str, str], str] = {}
    for place in PLACES:
        command = script if place == "login" else f"srun --quiet --nodelist=cpu-1 bash -c {shlex.quote(script)}"
        said = stack.ssh(command, user="carol", timeout_s=400)
        found |= {(place, attempt): answer.strip() for attempt, answer in zip(attempts, said.split("\f"), strict=False)}
    assert stack.job_state(job) == "RUNNING"
    yield found
    stack.slurm("scancel --user=alice; scancel --user=carol")
    stack.wait_until_idle()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("attempt", "refused"), ATTEMPTS)
def test_plain_user_is_refused(answers: dict[tuple[str, str], str], attempt: str, refused: str, place: str) -> None:
    said = answers[place, attempt]
    assert any(word in said for word in refused.split("|")), said
    assert "hunter2" not in said
    assert "PRIVATE KEY" not in said


@pytest.mark.parametrize(
    ("pod", "container"), [pytest.param("deployment/dev-login", "login", id="login"), pytest.param("cpu-1", "slurmd", id="worker")]
)
def test_host_key_that_is_refused_is_there(deployed: DevStack, pod: str, container: str) -> None:
    assert "PRIVATE KEY" in deployed.kubectl("exec", pod, "-c", container, "--", "cat", LIVE_KEY)


def test_slurm_accepts_what_a_user_may(deployed: DevStack) -> None:
    """The same ways in, as oneself: so the refusals above are refusals and not outages."""
    assert deployed.ssh(f"{FETCH} {as_user('carol')}", user="carol") == "200"
    assert deployed.ssh("scancel $(sbatch --parsable --hold --wrap true) && echo gone", user="carol") == "gone\n"
