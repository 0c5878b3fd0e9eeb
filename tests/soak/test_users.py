"""What a home for users outlives on the real cluster: the loss of its data, restored by the guide's words, and new keys for everything."""

import re

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.guides import run
from tests.support.cluster.home import Home, home
from tests.support.soak.users import shown

FIXTURES = (home,)


def test_lost_database_and_lost_state_are_restored_and_know_the_jobs(home: Home) -> None:
    """Quick: tests/slurm/test_database.py, the same programs without Kubernetes."""
    stack = home.stack
    ended = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=cpu-0", "--output=/dev/null")
    stack.wait_for_job(ended)
    waiting = stack.submit("#!/bin/bash\nhostname\n", "--hold", "--output=restored.out")
    saved_by = int(stack.slurm("date +%s")) + 10  # slurmctld writes its state some seconds after a change
    eventually("accounted", lambda: stack.ssh(f"sacct -nXP -j {ended} -o State").split() == ["COMPLETED"], 60)
    guide = shown()
    run(stack, guide["back up"])
    stack.kubectl("wait", "job/now", "--for=condition=complete", "--timeout=120s", timeout_s=150)
    assert "there are 1" in run(stack, guide["backed up"])
    assert "state" in run(stack, guide["copies"])
    newest = "stat -c %Y /backup/dev/state/* | sort -n | tail -n 1"
    copied = ("exec", "dev-slurmctld-0", "-c", "state-backup", "--", "bash", "-c", newest)
    eventually("a copy of the queue", lambda: int(stack.kubectl(*copied)) > saved_by, 150, every_s=3)
    run(stack, guide["lose"])
    run(stack, guide["lose"].replace("data-dev-mariadb", "state-dev-slurmctld").replace("dev-mariadb", "dev-slurmctld"))
    for pod in ("dev-mariadb-0", "dev-slurmctld-0"):
        eventually(f"{pod} waits for a word", lambda pod=pod: "WAITING" in stack.kubectl("logs", pod, "-c", "restore"), 120)
    home.up(backup={**home.config["backup"], "restoreFrom": "latest"})
    eventually("the old job in accounting", lambda: stack.ssh(f"sacct -nXP -j {ended} -o State").split() == ["COMPLETED"], 180)
    assert "restored" in run(stack, guide["restored"])
    old_jobs = run(stack, guide["jobs"].replace("tail", "tail -n 1000"))  # health checks may have run jobs since, each on all nodes
    assert str(ended) in [line.split()[0] for line in old_jobs.splitlines()]
    assert stack.job_state(waiting) == "PENDING"
    stack.wait_until_idle()  # Slurm refuses to release a job of a partition whose nodes are not back yet
    stack.slurm(f"scontrol release {waiting}")
    stack.wait_for_job(waiting)
    stack.wait_until_idle()


def test_new_keys_for_everything_lose_no_job_and_restart_no_worker(home: Home) -> None:
    """Quick: tests/slurm/test_keys.py, key by key, without Kubernetes."""
    stack = home.stack
    pods = {pod: stack.get("pod", pod)["metadata"]["uid"] for pod in ("cpu-0", "cpu-1", "gpu-0", "gpu-1")}
    stack.ssh("rm -f go")
    job = stack.submit("#!/bin/bash\nuntil [[ -e go ]]; do sleep 1; done\nsrun hostname\n", "--nodelist=cpu-0", "--output=keys.out")
    stack.wait_for_job(job, "RUNNING")
    before = {pod: _keys_taken(stack, pod) for pod in (*_login_pods(stack), *pods)}
    generation = _newest_generation(stack) + 1
    home.up(keys={"munge": generation, "jwt": generation, "database": generation, "spreadS": 20})
    # Kubernetes replaces slurmctld's pod for the new JWT and database keys. The new pod finds the new munge key.
    assert "another munge key than slurmctld had" in stack.kubectl("logs", "dev-slurmctld-0", "-c", "slurmctld")
    for pod, taken in before.items():  # one that heard of its key too late for slurmctld's restart takes it 10 minutes after
        eventually(f"another key in {pod}", lambda pod=pod, taken=taken: _keys_taken(stack, pod) > taken, 240, every_s=2)
    eventually("slurmctld", lambda: "cpu-0" in stack.ssh("sinfo -h -N"), 120)
    stack.ssh("touch go")
    stack.wait_for_job(job)
    assert stack.ssh("cat keys.out") == "cpu-0\n"
    eventually("a job on cpu-1", lambda: stack.ssh("srun --nodelist=cpu-1 hostname") == "cpu-1\n", 180)
    assert {pod: stack.get("pod", pod)["metadata"]["uid"] for pod in pods} == pods
    eventually("accounted", lambda: stack.ssh(f"sacct -nXP -j {job} -o State").split() == ["COMPLETED"], 120)
    eventually("the controller reads Slurm", lambda: re.search("True", _answers(stack)), 180)


def _newest_generation(stack: DevStack) -> int:
    """Of the keys that this cluster has ever had: values outlive the config that asked for them."""
    found = re.findall(r"dev-munge-key(?:-(\d+))?\.", " ".join(stack.get("secret", "slipway-slipway-dev-random")["data"]))
    return max(int(number or 1) for number in found)


def _answers(stack: DevStack) -> str:
    return stack.kubectl("get", "nodeset", "cpu", "-o", 'jsonpath={.status.conditions[?(@.type=="SlurmAnswers")].status}')


def _login_pods(stack: DevStack) -> list[str]:
    pods = [pod["metadata"] for pod in stack.get("pod", labels="app.kubernetes.io/component=login")["items"]]
    return [pod["name"] for pod in pods if "deletionTimestamp" not in pod]


def _keys_taken(stack: DevStack, pod: str) -> int:
    """How many other keys than its first the pod's munged has come to run with; one that has come may still wait."""
    container = "slurmd" if pod.startswith(("cpu-", "gpu-")) else "munged"
    return stack.kubectl("logs", pod, "-c", container).count("munged runs with another key")
