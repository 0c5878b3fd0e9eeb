"""What a plain user can try against the cluster, from a login session and from a job. Each is refused; what is not is in docs/security.md.

What needs two users on one node is in tests/slurm/test_isolation.py, and the roots are in tests/slurm/test_shared_root.py.
"""

import shlex
from collections.abc import Iterator

import pytest

from tests.cluster.dev_stack import DevStack, eventually

FETCH = "curl --silent --insecure --max-time 5 --output /dev/null --write-out '%{http_code}'"


@pytest.fixture(scope="module")
def victim(deployed: DevStack) -> Iterator[tuple[DevStack, int]]:
    """Alice has a file in her home, a secret in a job's environment and in its script, and that job runs."""
    deployed.ssh("echo secret > private; chmod 600 private")
    job = deployed.submit("#!/bin/bash\n# secret of the script\nsleep 600\n", "--nodelist=cpu-0", "--export=ALL,TOKEN=secret")
    deployed.wait_for_job(job, "RUNNING")
    yield deployed, job
    deployed.slurm("scancel --user=alice; scancel --user=carol")
    deployed.wait_until_idle()


@pytest.mark.parametrize("place", ["login", "job"])
@pytest.mark.parametrize(
    ("attempt", "refused"),
    [
        pytest.param("ls /var/run/secrets/kubernetes.io", "No such file", id="a token of Kubernetes"),
        pytest.param(f"{FETCH} https://kubernetes.default.svc/api/v1/namespaces/slurm/secrets", "403", id="the Kubernetes API"),
        pytest.param(f"{FETCH} https://$NODE:10250/pods", "401", id="the kubelet"),
        pytest.param(f"{FETCH} http://dev-slurmrestd:6820/slurm/v0.0.45/jobs/", "401", id="slurmrestd without a token"),
        pytest.param(
            f"{FETCH} -H X-SLURM-USER-NAME:slurm -H X-SLURM-USER-TOKEN:$(scontrol token | cut -d= -f2) http://dev-slurmrestd:6820/slurm/v0.0.45/jobs/",
            "401",
            id="slurmrestd as somebody else",
        ),
        pytest.param("mariadb --host=dev-mariadb --user=slurm --skip-password -e 'select 1'", "Access denied", id="the database"),
        pytest.param(
            "mariadb --host=dev-mariadb --user=root --skip-password -e 'select 1'", "Access denied", id="the database as its root"
        ),
        pytest.param("ls /etc/slipway/munge /etc/slipway/jwt /etc/slipway/host-keys", "No such file", id="the keys"),
        pytest.param("cat /home/alice/private", "Permission denied", id="another's home"),
        pytest.param("scontrol write batch_script $JOB -", "Access/permission denied", id="another's job script"),
        pytest.param("scancel $JOB", "Access/permission denied", id="cancel another's job"),
        pytest.param("scontrol update jobid=$JOB timelimit=1", "Access/permission denied", id="change another's job"),
        pytest.param("srun --jobid=$JOB --overlap env", "Access/permission denied", id="a step in another's job"),
        pytest.param("scontrol update nodename=cpu-0 state=drain reason=x", "Invalid user id", id="drain a node"),
        pytest.param("sbatch --uid=alice --wrap true", "root", id="a job as somebody else"),
        pytest.param("sacctmgr -i add account mine", "privilege", id="an account of one's own"),
        pytest.param("sudo -n true", "password is required|no new privileges|effective uid is not 0", id="sudo"),
    ],
)
def test_plain_user_is_refused(victim: tuple[DevStack, int], attempt: str, refused: str, place: str) -> None:
    stack, job = victim
    said = in_place(stack, place, f"JOB={job} NODE={stack.address}; {attempt} 2>&1; true")
    assert any(word in said for word in refused.split("|")), said
    assert "secret" not in said


def test_slurm_accepts_what_a_user_may(victim: tuple[DevStack, int]) -> None:
    """The same ways in, as oneself: so the refusals above are refusals and not outages."""
    stack, _ = victim
    token = "$(scontrol token | cut -d= -f2)"
    fetched = f"{FETCH} -H X-SLURM-USER-NAME:carol -H X-SLURM-USER-TOKEN:{token} http://dev-slurmrestd:6820/slurm/v0.0.45/jobs/"
    assert in_place(stack, "login", fetched) == "200"
    assert in_place(stack, "login", "scancel $(sbatch --parsable --hold --wrap true) && echo gone") == "gone"


def in_place(stack: DevStack, place: str, script: str) -> str:
    """What a script of Carol's says in a login session, or in a job on another node than Alice's."""
    if place == "login":
        return stack.ssh(script, user="carol", check=False).strip()
    out = eventually("Carol's job", lambda: stack.ssh(f"srun --quiet --nodelist=cpu-1 bash -c {shlex.quote(script)}", user="carol"), 60)
    return out.strip()
