"""Slurm's files change in every way, good and bad, while a job array runs: it loses nothing, and `up` says what became of the files.

Quick: tests/slurm/test_live_files.py, with real slurmds, and tests/cluster/test_changes.py, where `up` changes one limit under a job.
"""

import json

from tests.support.cluster.dev_stack import DevStack, eventually

PROLOG = "#!/bin/bash\necho $SLURM_JOB_ID >> /home/alice/prologs\n"
REFUSED = 'cluster.slurm.raw=["JobCompType=jobcomp/script", "JobCompLoc=/home/alice/nothere"]'
"""The script does not exist in slurmctld's pod. No rule can know that when the stack file is read; slurmctld refuses it."""
FILES = "configmap/dev-slurm-config"


def test_array_runs_on_whatever_becomes_of_slurms_files(restored: DevStack) -> None:
    stack = restored
    array = stack.hold("--array=0-3", "--output=/dev/null")
    eventually("the whole array", lambda: len(_tasks(stack, array)) == 4, 60)
    pods = {pod["metadata"]["uid"] for pod in stack.get("pods", labels="slipway.dev/nodeset")["items"]}

    # Fewer CPUs would abort the jobs there: each node gets its new size when its jobs have ended.
    smaller = ("--config", "cluster.nodeSets[0].cpus=1")
    said = stack.slipway("up", *smaller).stdout
    assert "Slurm's files are live" in said
    assert "2 nodes keep their size until no job can be there: cpu-0, cpu-1" in said
    assert _cpus(stack) == {"cpu-0": 2, "cpu-1": 2}
    eventually("a node on its way", lambda: "DRAIN" in str(stack.nodes()), 60)
    assert len(_tasks(stack, array)) == 4

    # A new prolog of tasks, and a parameter that manuals tie to a restart of slurmctld.
    stack.ssh("rm -f prologs; cat > prolog.sh; chmod 755 prolog.sh", stdin=PROLOG)
    settings = ("cluster.slurm.settings.TaskProlog=/home/alice/prolog.sh", "cluster.slurm.maxArraySize=2002")
    changed = (*smaller, *(word for setting in settings for word in ("--config", setting)))
    assert "Slurm's files are live" in stack.slipway("up", *changed).stdout
    config = stack.slurm("scontrol show config")
    assert "/home/alice/prolog.sh" in config
    assert "2002" in next(line for line in config.splitlines() if line.startswith("MaxArraySize"))
    job = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=gpu-0", "--output=/dev/null")
    stack.wait_for_job(job)
    assert stack.ssh("cat prologs").split() == [str(job)]

    # A line that slurmctld refuses: it keeps the files that it has, and `up` ends with its words.
    refused = stack.slipway("up", *changed, "--config", REFUSED, check=False)
    assert refused.returncode == 1
    assert "Slurm's files are not in use" in refused.stdout + refused.stderr
    assert "MaxArraySize            = 2002" in stack.slurm("scontrol show config")
    assert _condition(stack)["reason"] == "Refused"
    assert "Slurm's files are live" in stack.slipway("up", *changed).stdout

    # A gres.conf that does not match slurm.conf, by hand: slurmctld takes it, and the slurmds of the GPU nodes end over it. So slurmctld
    # gets the files before again. The guard puts right what was done by hand.
    stack.pause_guard(FILES)
    wrong = {"data": {"gres.conf": "NodeName=gpu-[0-1] Name=gpu Type=a100 File=/dev/nvidia[4-7]\n"}}
    stack.kubectl("patch", FILES, "--type=merge", "--patch", json.dumps(wrong))
    eventually("the refusal", lambda: _condition(stack)["reason"] == "Refused", 60)
    assert "2 slurmds that had answered ended over these files, or fell silent: gpu-0, gpu-1" in _condition(stack)["message"]
    eventually("the GPU nodes", lambda: all("NOT_RESPONDING" not in stack.nodes()[name] for name in ("gpu-0", "gpu-1")), 60)
    stack.resume_guard(FILES)
    eventually("the files as deployed", lambda: _condition(stack)["reason"] == "Live", 60)

    assert len(_tasks(stack, array)) == 4
    assert {pod["metadata"]["uid"] for pod in stack.get("pods", labels="slipway.dev/nodeset")["items"]} >= pods
    stack.let_go()
    eventually("the array's end", lambda: not _tasks(stack, array), 60)
    eventually("all tasks in accounting", lambda: stack.ssh(f"sacct -nXP -j {array} -o State").split() == ["COMPLETED"] * 4, 60)
    eventually("the new sizes", lambda: _cpus(stack) == {"cpu-0": 1, "cpu-1": 1}, 60)
    assert {pod["metadata"]["uid"] for pod in stack.get("pods", labels="slipway.dev/nodeset")["items"]} >= pods


def _tasks(stack: DevStack, array: int) -> list[str]:
    """The running tasks of the array."""
    return stack.slurm(f"squeue -h -r -j {array} -t RUNNING -o %i", check=False).split()


def _cpus(stack: DevStack) -> dict[str, int]:
    """What slurmctld takes the nodes of the set to have."""
    shown = stack.slurm("sinfo -h -N -n cpu-[0-1] -o '%N %c' | sort -u").split()
    return {node: int(count) for node, count in zip(shown[::2], shown[1::2], strict=True)}


def _condition(stack: DevStack) -> dict[str, str]:
    conditions = stack.get("pod", "dev-slurmctld-0")["status"]["conditions"]
    return next((one for one in conditions if one["type"] == "slipway.dev/FilesLive"), {"reason": "", "message": ""})
