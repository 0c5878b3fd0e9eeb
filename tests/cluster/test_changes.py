"""Changes of a running cluster: the preview shows them, `up` applies them, running jobs finish."""

import json
import re
from pathlib import Path

from tests.support.cluster.dev_stack import DevStack, eventually

NEW_SET = json.dumps({"name": "extra", "pool": "workers", "size": 1, "cpus": 1, "memoryMiB": 512, "resources": {"cpu": "50m"}})
NEW_PARTITION = json.dumps({"name": "extra", "nodeSets": ["extra"]})


def test_second_up_changes_nothing_and_says_so(stack: DevStack) -> None:
    said = stack.slipway("up").stdout
    assert "nothing to change" in said.lower(), said


def test_preview_of_an_unchanged_stack_shows_no_change(stack: DevStack) -> None:
    assert "nothing to change" in stack.slipway("preview").stdout.lower()


def test_partition_change_is_previewed_by_line_and_applied_under_a_job(restored: DevStack) -> None:
    change = ("--config", "cluster.partitions[0].maxTime=02:00:00")
    job = restored.hold("--nodelist=cpu-0", "--time=60")
    restored.wait_for_job(job, "RUNNING")
    told = restored.slipway("preview", *change, "--exit-code", check=False)
    assert any(line.strip().startswith("+") and "MaxTime=02:00:00" in line for line in told.stdout.splitlines())
    assert _in_guide(told.stdout, "What changes in Slurm")
    assert _in_guide(told.stdout, "The jobs that are there now")
    assert told.returncode == 2
    pods = {pod["metadata"]["uid"] for pod in restored.get("pod")["items"] if pod["status"]["phase"] == "Running"}
    assert "Slurm's files are live" in restored.slipway("up", *change).stdout
    eventually("the new limit", lambda: "MaxTime=02:00:00" in restored.slurm("scontrol show partition main"), 120)
    version = restored.get("configmap", "dev-slurm-config")["metadata"]["resourceVersion"]
    eventually("the kubelet told twice", lambda: _told(restored) == f"{version}.2")
    assert restored.job_state(job) == "RUNNING"
    restored.let_go()
    restored.wait_for_job(job)
    assert {pod["metadata"]["uid"] for pod in restored.get("pod")["items"]} >= pods


def test_disk_that_cannot_grow_is_refused_and_nothing_changes(restored: DevStack) -> None:
    """Volumes of the local cluster are folders, whose class cannot grow them."""
    change = ("--config", "cluster.storage.state.size=2Gi")

    def there() -> list[str]:
        names = ("statefulset/dev-slurmctld", "pvc/state-dev-slurmctld-0", "pod/dev-slurmctld-0")
        return [one["metadata"]["uid"] for one in json.loads(restored.kubectl("get", *names, "-o", "json"))["items"]]

    before = there()
    for verb in ("preview", "up"):
        done = restored.slipway(verb, *change, check=False)
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode != 0, said
        assert "PersistentVolumeClaim slurm/state-dev-slurmctld-0" in said
        assert "Set the size back." in said
    assert there() == before


def test_node_set_is_added_while_a_job_runs_and_pruned_under_a_job_on_it(restored: DevStack) -> None:
    job = restored.hold("--nodelist=cpu-0")
    restored.wait_for_job(job, "RUNNING")
    change = ("--config", f"cluster.nodeSets[3]={NEW_SET}", "--config", f"cluster.partitions[3]={NEW_PARTITION}")
    assert "extra" in restored.slipway("preview", *change).stdout
    restored.slipway("up", *change)
    eventually("the new node idle", lambda: restored.nodes().get("extra-0") == "IDLE+CLOUD", 180)
    restored.wait_for_job(restored.submit("#!/bin/bash\ntrue\n", "--partition=extra"))
    restored.let_go()
    restored.wait_for_job(job)
    last = restored.hold("--partition=extra", "--time=60")
    waiting = restored.submit("#!/bin/bash\ntrue\n", "--partition=extra", "--hold")
    restored.wait_for_job(last, "RUNNING")
    told = restored.slipway("preview", "--exit-code", check=False)
    for heading in ("What changes in Slurm", "The jobs that are there now", "Dangerous"):
        assert _in_guide(told.stdout, heading)
    assert told.returncode == 3
    restored.slurm(f"scancel {waiting}")
    restored.slipway("up")
    assert restored.job_state(last) == "RUNNING"
    restored.let_go()
    restored.wait_for_job(last)
    eventually("the set pruned", lambda: "extra-0" not in restored.nodes(), 120)
    eventually("its pod gone", lambda: not restored.kubectl("get", "pod", "extra-0", "--ignore-not-found"), 120)


def _told(stack: DevStack) -> str:
    """Which version of Slurm's files slurmctld's kubelet was told of: so it did not wait for its minute."""
    return stack.get("pod", "dev-slurmctld-0")["metadata"]["annotations"].get("slipway.dev/files", "")


def _in_guide(said: str, heading: str) -> bool:
    """True when docs/operate/changes.md shows this part of a preview as it was printed, but for numbers of jobs and times."""
    lines = said.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.startswith(heading)), None)
    assert begin is not None, said
    end = next(at for at in range(begin, len(lines)) if not lines[at])
    part = "".join(f"    {line}\n" for line in lines[begin:end])
    shown = _without_times(Path("docs/operate/changes.md").read_text())
    assert _without_times(part) in shown, part
    return True


def _without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|job \d+", "*", text)
