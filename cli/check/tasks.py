"""Plans the smoke jobs of a cluster and judges their output. Pure.

Every job runs in the check's folder in the user's home, and its files are read on the login node afterwards.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.check.facts import Facts, NodeSetFacts
from slurm import mig
from slurm.gpu_links import least_gb_per_s
from slurm.hostlists import fold

MOST_NODES = 16
"""Most nodes of a set that its hello job runs on."""
_SHOWN = 8
"""Lines of a failed job's output."""
_MINUTES = 10
"""Time limit of each job."""

_HELLO = """mkdir -p {name}.files
srun --quiet bash -c 'echo "$SLURMD_NODENAME $(id -un)" >{name}.files/$SLURMD_NODENAME'
"""
_GPUS = """echo "visible ${CUDA_VISIBLE_DEVICES:-${ROCR_VISIBLE_DEVICES:-}}"
devices='/dev/nvidia[0-9] /dev/nvidia[0-9][0-9]'
if [ -d @MIG@ ]; then devices='@MIG@/*-ci' only=MIG; fi
for device in $devices; do
  [ -e "$device" ] || continue
  # The device cgroup answers "Operation not permitted"; a simulated device that is ours answers "No such device".
  case $( { : <"$device"; } 2>&1) in *"not permitted"*) echo "refused $device" ;; *) echo "ours $device" ;; esac
done
if command -v nvidia-smi >/dev/null; then nvidia-smi -L | grep "$only" | sed 's/^/driver /'; fi
""".replace("@MIG@", mig.FOLDER)
_NCCL = """if ! nvidia-smi -L >/dev/null 2>&1; then echo 'no driver'; exit; fi
all_reduce_perf --minbytes 1G --maxbytes 4G --stepfactor 2 --ngpus "$SLURM_GPUS_ON_NODE"
"""
_NCCL_ROW = re.compile(r"^ *(\d+) +\d+ +float +sum +-?\d+ +[\d.]+ +[\d.]+ +([\d.]+) +(\d+|N/A)\b", re.MULTILINE)
"""Bytes, bus bandwidth and wrong values of the out-of-place run. Source: nccl-tests, src/common.cu and doc/PERFORMANCE.md."""
_MPI_C = """#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
  int rank, size, sum = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("ranks %d sum %d\\n", size, sum);
  return MPI_Finalize();
}
"""
_PACKAGE = """cd "$(mktemp -d)"
mkdir -p hello/DEBIAN hello/usr/bin
printf '%s\\n' 'Package: slipway-check' 'Version: 1' 'Architecture: all' 'Maintainer: no' 'Description: says where' >hello/DEBIAN/control
printf '%s\\n' '#!/bin/sh' 'echo "installed $(hostname)"' >hello/usr/bin/slipway-check
chmod 0755 hello/usr/bin/slipway-check
dpkg-deb --root-owner-group --build hello hello.deb
chmod -R a+rX .
sudo -n apt-get install --yes --reinstall ./hello.deb
rm -r "$PWD"
"""
_IMAGE = """mkdir -p image/bin image/etc
echo 'of the image' >image/etc/slipway-check
gcc -static -x c - -o image/bin/hello <<'END'
#include <stdio.h>
int main(void) {
  char text[64] = "";
  FILE *file = fopen("/etc/slipway-check", "r");
  return file && fgets(text, sizeof text, file) && printf("file %s", text) > 0 ? 0 : 1;
}
END
mksquashfs image image.sqsh -quiet -no-progress
"""
TAKE_PACKAGE_AWAY = "sudo -n dpkg --purge slipway-check"


@dataclass(frozen=True)
class Task:
    """One check: a script for the login session, and a job."""

    name: str
    title: str
    options: tuple[str, ...]
    script: str
    """The job's script, without its first line."""
    before: str = ""
    """A script that the login session runs first; if it fails, the job is not submitted."""
    nodes: int = 1
    node_set: NodeSetFacts | None = None
    asked: int = 0
    """GPUs."""


@dataclass(frozen=True)
class Result:
    """The result of a task's job. Texts are as Slurm and the job wrote them."""

    job: str = ""
    """The job's ID; empty if the job was refused or the script before it failed."""
    submitted: float = 0.0
    """Time of the submission, by the login node's clock."""
    state: str = ""
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    files: str = ""
    """The content of the job's files in the shared home, read on the login node."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    title: str
    passed: bool | None
    """None if it was not checked; `said` has the reason."""
    said: str
    remedy: str = ""
    seconds: float | None = None


def plan(facts: Facts) -> tuple[list[Task], list[Row]]:
    """The jobs to run, and a row for each check that cannot run here."""
    tasks: list[Task] = []
    rows: list[Row] = []
    for node_set in facts.node_sets:
        usable = node_set.up or [node for node in node_set.nodes if node.may_wake][:1]
        if not usable:
            states = ", ".join(sorted({node.state for node in node_set.nodes}))
            remedy = f"See why: sinfo --list-reasons -p {node_set.partition}"
            rows.append(Row(f"hello on {node_set.name}", False, f"no node takes jobs: {states}", remedy))
            continue
        tasks.append(_hello(node_set, min(len(usable), MOST_NODES)))
        if node_set.gpus:
            tasks.append(_gpus(node_set))
        if _has_links(node_set) and "all_reduce_perf" in facts.tools:
            options = (*_options(node_set, 1), f"--gpus={node_set.gpus}")
            tasks.append(Task(f"nccl-{node_set.name}", f"NCCL on {node_set.name}", options, _NCCL, node_set=node_set, asked=node_set.gpus))
    mpi_set = next((node_set for node_set in facts.node_sets if len(node_set.up) > 1), None)
    if mpi_set is None:
        rows.append(Row("MPI over two nodes", None, "no node set has two nodes that are up"))
    elif lacking := [tool for tool in ("mpicc", "gcc") if tool not in facts.tools]:
        remedy = "docs/use/environment.md names what the root of images/root has."
        rows.append(Row("MPI over two nodes", None, f"the root has no {lacking[0]}", remedy))
    else:
        tasks.append(_mpi(mpi_set))
    if isinstance(container := _container(facts), Row):
        rows.append(container)
    else:
        tasks.append(container)
    if facts.sudo:
        remedy = "To check it, log in as an administrator: pass --user with the name of a user with `admin: true`."
        rows.append(Row("package for jobs", None, f"sudo refuses {facts.user}: {facts.sudo}", remedy))
    elif "apt-get" in facts.tools and facts.node_sets and (first := next((node_set for node_set in facts.node_sets if node_set.up), None)):
        tasks.append(Task("package", "package for jobs", _options(first, 1), "slipway-check\n", _PACKAGE, node_set=first))
    return tasks, rows


def _options(node_set: NodeSetFacts, nodes: int) -> tuple[str, ...]:
    exclusion = (f"--exclude={fold(node_set.others)}",) if node_set.others else ()
    return (f"--partition={node_set.partition}", f"--nodes={nodes}", "--ntasks-per-node=1", f"--time={_MINUTES}", *exclusion)


def _hello(node_set: NodeSetFacts, nodes: int) -> Task:
    name = f"hello-{node_set.name}"
    script = _HELLO.format(name=name)
    return Task(name, f"hello on {node_set.name}", _options(node_set, nodes), script, nodes=nodes, node_set=node_set)


def _gpus(node_set: NodeSetFacts) -> Task:
    """A job with all GPUs of a node but one, so that one is refused."""
    asked = max(1, node_set.gpus - 1)
    options = (*_options(node_set, 1), f"--gpus={asked}")
    return Task(f"gpus-{node_set.name}", f"GPUs on {node_set.name}", options, _GPUS, node_set=node_set, asked=asked)


def _has_links(node_set: NodeSetFacts) -> bool:
    """False for MIG instances, which have no links to each other."""
    return node_set.gpus > 1 and not mig.is_instance(node_set.model)


def _mpi(node_set: NodeSetFacts) -> Task:
    compiled = f"cat >mpi.c <<'END'\n{_MPI_C}END\nmpicc mpi.c -o mpi\n"
    return Task("mpi", "MPI over two nodes", _options(node_set, 2), "srun --quiet ./mpi\n", compiled, nodes=2, node_set=node_set)


def _container(facts: Facts) -> Task | Row:
    """A step in an image that is built in the login session, so that no registry is needed."""
    title = "container"
    first = next((node_set for node_set in facts.node_sets if node_set.up), None)
    if "container-image" not in facts.tools:
        return Row(title, None, "srun has no --container-image", "docs/use/containers.md says what containers need.")
    if lacking := [tool for tool in ("gcc", "mksquashfs") if tool not in facts.tools]:
        return Row(title, None, f"the root has no {lacking[0]} to make an image with")
    if first is None:
        return Row(title, None, "no node is up")
    script = 'srun --quiet --container-image="$PWD/image.sqsh" /bin/hello\n'
    return Task("container", title, _options(first, 1), script, _IMAGE, node_set=first)


def judge(task: Task, result: Result, user: str) -> Row:
    """The row of one task."""
    if not result.job:
        return Row(task.title, False, _last(result.output) or "it was not submitted", _end(result.output))
    if result.state in ("PENDING", "CONFIGURING", "RUNNING"):
        problem = f"job {result.job} waited: {result.reason}" if result.state != "RUNNING" else f"job {result.job} did not end in time"
        remedy = "See why: squeue, sinfo --list-reasons. Or give it more time with --timeout."
        return Row(task.title, False, problem, remedy, result.seconds)
    if result.state != "COMPLETED":
        message = f"job {result.job} is {result.state}" + ("" if result.output.strip() else ", and wrote nothing")
        return Row(task.title, False, message, f"{_end(result.output)}See more: scontrol show job {result.job}", result.seconds)
    if task.name.startswith("nccl-") and result.output.strip() == "no driver":
        return Row(task.title, None, "the node has no driver", seconds=result.seconds)
    message, remedy = _meaning(task, result, user)
    return Row(task.title, not remedy, message, remedy, result.seconds)


def _meaning(task: Task, result: Result, user: str) -> tuple[str, str]:
    """What a completed job shows, and a remedy if that is wrong."""
    if task.name.startswith("hello-"):
        return _judge_hello(task, result, user)
    if task.name.startswith("gpus-"):
        return _judge_gpus(task, result)
    if task.name.startswith("nccl-"):
        return _judge_nccl(task, result)
    if task.name == "mpi":
        right = "ranks 2 sum 3" in result.output
        return _last(result.output), "" if right else "The ranks did not find each other: docs/use/troubleshooting.md, MPI."
    if task.name == "container":
        right = "file of the image" in result.output
        return ("a step ran in an image" if right else _last(result.output)), "" if right else "The step did not run in its image."
    match = re.search(r"^installed (\S+)$", result.output, re.MULTILINE)
    if match:
        return f"installed in this session, run on {match[1]}", ""
    return _last(result.output), "The job did not find the installed program. Check that storage.root is enabled."


def _judge_hello(task: Task, result: Result, user: str) -> tuple[str, str]:
    assert task.node_set
    entries = [line.split() for line in result.files.splitlines()]
    nodes = sorted({line[0] for line in entries if len(line) == 2})
    known_nodes = {node.name for node in task.node_set.nodes}
    other_users = sorted({line[1] for line in entries if len(line) == 2} - {user})
    if other_users:
        return f"jobs ran as {', '.join(other_users)}, not as {user}", "Users and their UIDs differ between login pods and workers."
    if len(nodes) != task.nodes or not known_nodes.issuperset(nodes):
        message = f"files of {len(nodes)} of {task.nodes} nodes are in the home"
        return message, "Jobs and the login node do not share the home. Check storage.home."
    return f"{fold(nodes)}, each with a file in the home", ""


def _judge_gpus(task: Task, result: Result) -> tuple[str, str]:
    lines = result.output.splitlines()
    counts = {word: sum(line.startswith(f"{word} ") for line in lines) for word in ("ours", "refused", "driver")}
    visible = next((line.removeprefix("visible ") for line in lines if line.startswith("visible ")), "")
    count = len([device for device in visible.split(",") if device])
    message = f"asked for {task.asked}: {count} visible, {counts['ours']} open, {counts['refused']} refused"
    if counts["driver"]:
        message += f", {counts['driver']} in nvidia-smi"
    devices = counts["ours"] + counts["refused"]
    is_wrong = count != task.asked or (devices and counts["ours"] != task.asked) or (counts["driver"] and counts["driver"] != task.asked)
    return message, "The job does not see exactly the GPUs it was given. Check gres.conf and ConstrainDevices." if is_wrong else ""


def _judge_nccl(task: Task, result: Result) -> tuple[str, str]:
    assert task.node_set
    measurements = _NCCL_ROW.findall(result.output)
    if not measurements:
        remedy = "all_reduce_perf printed no figure. Check that it was built for this CUDA (docs/use/environment.md)."
        return _last(result.output), remedy
    _, figure, wrong = max(measurements, key=lambda row: int(row[0]))
    model = task.node_set.model
    expected = least_gb_per_s(model)
    message = f"all-reduce over {task.asked} GPUs: {float(figure):.0f} GB/s"
    if wrong.strip("N/A0"):
        remedy = "A GPU or a link computes wrong values. Drain the node, and run `dcgmi diag -r 3` on it."
        return f"{message}, {wrong} wrong values", remedy
    if expected is None:
        return f"{message}; no figure is known for {model or 'GPUs without a type'}", ""
    remedy = (
        f"{model} reach {expected:.0f} GB/s. `nvidia-smi nvlink -s` on the node shows links that are down, `nvidia-smi topo -m` the paths."
    )
    return f"{message}, at least {expected:.0f} expected", "" if float(figure) >= expected else remedy


def judge_missing(tasks: Sequence[Task], results: Mapping[str, Result]) -> list[Row]:
    """A row for each set with a driver but without nccl-tests, by the output of its jobs."""
    planned = {task.name for task in tasks}
    return [
        Row(f"NCCL on {task.node_set.name}", None, "the root has no all_reduce_perf", "docs/use/environment.md: nccl-tests.")
        for task in tasks
        if task.node_set and task.name.startswith("gpus-") and _has_links(task.node_set)
        if f"nccl-{task.node_set.name}" not in planned and re.search("^driver ", results[task.name].output, re.MULTILINE)
    ]


def judge_files(rows: Sequence[Row], tasks: Sequence[Task]) -> int:
    """The number of nodes with a file in the shared home."""
    passed = {row.title for row in rows if row.passed}
    return sum(task.nodes for task in tasks if task.name.startswith("hello-") and task.title in passed)


def judge_accounting(facts: Facts, jobs: Sequence[str], states: Mapping[str, str]) -> Row:
    """Whether accounting has recorded all jobs. `states` are the recorded states."""
    title = "accounting"
    if not facts.has_accounting:
        return Row(title, None, "accounting is off (accounting.enabled)")
    recorded = [job for job in jobs if states.get(job) == "COMPLETED"]
    if len(recorded) == len(jobs):
        return Row(title, True, f"all {len(jobs)} jobs are recorded")
    message = f"{len(recorded)} of {len(jobs)} jobs are recorded as completed"
    return Row(title, False, message, "Read slurmdbd's log: kubectl logs of the pod with the component slurmdbd.")


def _end(text: str) -> str:
    """The last lines, each with a newline."""
    return "".join(f"{line}\n" for line in text.strip().splitlines()[-_SHOWN:])


def _last(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
