"""The guide to backups and restores, followed on the real cluster."""

from tests.cluster.dev_stack import eventually
from tests.cluster.guides import commands, run
from tests.cluster.test_users import Home, home

FIXTURES = (home,)


def test_lost_database_and_lost_state_are_restored_and_know_the_jobs(home: Home) -> None:
    """Quick: tests/slurm/test_database.py, the same programs without Kubernetes."""
    stack = home.stack
    ended = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=cpu-0", "--output=/dev/null")
    stack.wait_for_job(ended)
    waiting = stack.submit("#!/bin/bash\nhostname\n", "--hold", "--output=restored.out")
    saved_by = int(stack.slurm("date +%s")) + 10  # slurmctld writes its state some seconds after a change
    eventually("accounted", lambda: stack.ssh(f"sacct -nXP -j {ended} -o State").split() == ["COMPLETED"], 60)
    shown = commands("docs/accounting.md")
    run(stack, next(command for command in shown if "create job" in command))
    stack.kubectl("wait", "job/now", "--for=condition=complete", "--timeout=120s", timeout_s=150)
    assert "there are 1" in run(stack, next(command for command in shown if "logs -f job/now" in command))
    assert "state" in run(stack, next(command for command in shown if "ls -lR" in command))
    newest = "stat -c %Y /backup/dev/state/* | sort -n | tail -n 1"
    copied = ("exec", "dev-slurmctld-0", "-c", "state-backup", "--", "bash", "-c", newest)
    eventually("a copy of the queue", lambda: int(stack.kubectl(*copied)) > saved_by, 150, every_s=3)
    lose_database = next(command for command in shown if "delete pvc" in command)
    run(stack, lose_database)
    run(stack, lose_database.replace("data-dev-mariadb", "state-dev-slurmctld").replace("dev-mariadb", "dev-slurmctld"))
    for pod in ("dev-mariadb-0", "dev-slurmctld-0"):
        eventually(f"{pod} waits for a word", lambda pod=pod: "WAITING" in stack.kubectl("logs", pod, "-c", "restore"), 120)
    home.up(backup={**home.config["backup"], "restoreFrom": "latest"})
    eventually("the old job in accounting", lambda: stack.ssh(f"sacct -nXP -j {ended} -o State").split() == ["COMPLETED"], 180)
    assert "restored" in run(stack, next(command for command in shown if "dev-mariadb-0 -c restore" in command))
    last_jobs = next(command for command in shown if command.startswith("sacct") and "tail" in command)
    old_jobs = run(stack, last_jobs.replace("tail", "tail -n 1000"))  # health checks may have run jobs since, each on all nodes
    assert str(ended) in [line.split()[0] for line in old_jobs.splitlines()]
    assert stack.job_state(waiting) == "PENDING"
    stack.wait_until_idle()  # Slurm refuses to release a job of a partition whose nodes are not back yet
    stack.slurm(f"scontrol release {waiting}")
    stack.wait_for_job(waiting)
    stack.wait_until_idle()
