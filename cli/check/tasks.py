"""Which smoke jobs a cluster gets, and what their output means. Pure.

Every job runs in the check's folder in the user's home, where it writes what is read afterwards on the login node.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.check.facts import Facts, NodeSetFacts
from slurm import mig
from slurm.gpu_links import least_gb_per_s
from slurm.hostlists import fold

MOST_NODES = 16
"""A set's hello runs on so many of its nodes at once."""
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
"""Bytes, bus bandwidth and wrong values, not in place. Source: nccl-tests, src/common.cu and doc/PERFORMANCE.md."""
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
    """One check: what is done in the login session before, and the job."""

    name: str
    title: str
    options: tuple[str, ...]
    script: str
    """Of the job, without its first line."""
    before: str = ""
    """A script for the login session; where it fails, there is no job."""
    nodes: int = 1
    node_set: NodeSetFacts | None = None
    asked: int = 0
    """GPUs."""


@dataclass(frozen=True)
class Result:
    """What came of a task's job. Texts are as Slurm and the job wrote them."""

    job: str = ""
    """Its number; empty where it was refused, or what comes before it failed."""
    submitted: float = 0.0
    """When, by the login node's clock."""
    state: str = ""
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    files: str = ""
    """What the tasks of the job wrote into the shared home, as the login node sees it."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    title: str
    passed: bool | None
    """None: not checked, and `said` tells why."""
    said: str
    remedy: str = ""
    seconds: float | None = None


def plan(facts: Facts) -> tuple[list[Task], list[Row]]:
    """The jobs to run, and the rows of what cannot be checked here."""
    tasks: list[Task] = []
    rows: list[Row] = []
    for each in facts.node_sets:
        usable = each.up or [node for node in each.nodes if node.may_wake][:1]
        if not usable:
            states = ", ".join(sorted({node.state for node in each.nodes}))
            rows.append(
                Row(f"hello on {each.name}", False, f"no node takes jobs: {states}", f"Why: sinfo --list-reasons -p {each.partition}")
            )
            continue
        tasks.append(_hello(each, min(len(usable), MOST_NODES)))
        if each.gpus:
            tasks.append(_gpus(each))
        if _has_links(each) and "all_reduce_perf" in facts.tools:
            options = (*_options(each, 1), f"--gpus={each.gpus}")
            tasks.append(Task(f"nccl-{each.name}", f"NCCL on {each.name}", options, _NCCL, node_set=each, asked=each.gpus))
    wide = next((each for each in facts.node_sets if len(each.up) > 1), None)
    if wide is None:
        rows.append(Row("MPI over two nodes", None, "no node set has two nodes that are up"))
    elif lacking := [tool for tool in ("mpicc", "gcc") if tool not in facts.tools]:
        remedy = "docs/use/environment.md names what the root of images/root has."
        rows.append(Row("MPI over two nodes", None, f"the root has no {lacking[0]}", remedy))
    else:
        tasks.append(_mpi(wide))
    container = _container(facts)
    if isinstance(container, Row):
        rows.append(container)
    else:
        tasks.append(container)
    if facts.sudo:
        remedy = "To check it, name a user with `admin: true` by --user."
        rows.append(Row("package for jobs", None, f"sudo refuses {facts.user}: {facts.sudo}", remedy))
    elif "apt-get" in facts.tools and facts.node_sets and (first := next((each for each in facts.node_sets if each.up), None)):
        tasks.append(Task("package", "package for jobs", _options(first, 1), "slipway-check\n", _PACKAGE, node_set=first))
    return tasks, rows


def _options(node_set: NodeSetFacts, nodes: int) -> tuple[str, ...]:
    others = (f"--exclude={fold(node_set.others)}",) if node_set.others else ()
    return (f"--partition={node_set.partition}", f"--nodes={nodes}", "--ntasks-per-node=1", f"--time={_MINUTES}", *others)


def _hello(node_set: NodeSetFacts, nodes: int) -> Task:
    name = f"hello-{node_set.name}"
    script = _HELLO.format(name=name)
    return Task(name, f"hello on {node_set.name}", _options(node_set, nodes), script, nodes=nodes, node_set=node_set)


def _gpus(node_set: NodeSetFacts) -> Task:
    """All GPUs of a node but one, so that there is one to be refused."""
    asked = max(1, node_set.gpus - 1)
    options = (*_options(node_set, 1), f"--gpus={asked}")
    return Task(f"gpus-{node_set.name}", f"GPUs on {node_set.name}", options, _GPUS, node_set=node_set, asked=asked)


def _has_links(node_set: NodeSetFacts) -> bool:
    """Instances of MIG do not talk to each other."""
    return node_set.gpus > 1 and not mig.is_instance(node_set.model)


def _mpi(node_set: NodeSetFacts) -> Task:
    compiled = f"cat >mpi.c <<'END'\n{_MPI_C}END\nmpicc mpi.c -o mpi\n"
    return Task("mpi", "MPI over two nodes", _options(node_set, 2), "srun --quiet ./mpi\n", compiled, nodes=2, node_set=node_set)


def _container(facts: Facts) -> Task | Row:
    """A step in an image that is built in the login session, so that no registry is needed."""
    title = "container"
    first = next((each for each in facts.node_sets if each.up), None)
    if "container-image" not in facts.tools:
        return Row(title, None, "srun has no --container-image", "docs/use/containers.md says what containers need.")
    if lacking := [tool for tool in ("gcc", "mksquashfs") if tool not in facts.tools]:
        return Row(title, None, f"the root has no {lacking[0]} to make an image with")
    if first is None:
        return Row(title, None, "no node is up")
    script = 'srun --quiet --container-image="$PWD/image.sqsh" /bin/hello\n'
    return Task("container", title, _options(first, 1), script, _IMAGE, node_set=first)


def judge(task: Task, result: Result, user: str) -> Row:
    """What came of one task."""
    if not result.job:
        return Row(task.title, False, _last(result.output) or "it was not submitted", _end(result.output))
    if result.state in ("PENDING", "CONFIGURING", "RUNNING"):
        what = f"job {result.job} waited: {result.reason}" if result.state != "RUNNING" else f"job {result.job} did not end in time"
        return Row(
            task.title, False, what, "What is in its way: squeue, sinfo --list-reasons. Or give more time: --timeout.", result.seconds
        )
    if result.state != "COMPLETED":
        said = f"job {result.job} is {result.state}" + ("" if result.output.strip() else ", and wrote nothing")
        return Row(task.title, False, said, f"{_end(result.output)}More about it: scontrol show job {result.job}", result.seconds)
    if task.name.startswith("nccl-") and result.output.strip() == "no driver":
        return Row(task.title, None, "the node has no driver", seconds=result.seconds)
    said, remedy = _meaning(task, result, user)
    return Row(task.title, not remedy, said, remedy, result.seconds)


def _meaning(task: Task, result: Result, user: str) -> tuple[str, str]:
    """What a job that completed shows, and a remedy where that is wrong."""
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
    found = re.search(r"^installed (\S+)$", result.output, re.MULTILINE)
    if found:
        return f"installed in this session, run on {found[1]}", ""
    return _last(result.output), "The job did not find a program that was installed: is storage.root on?"


def _judge_hello(task: Task, result: Result, user: str) -> tuple[str, str]:
    assert task.node_set
    words = [line.split() for line in result.files.splitlines()]
    nodes = sorted({line[0] for line in words if len(line) == 2})
    known = {node.name for node in task.node_set.nodes}
    strangers = sorted({line[1] for line in words if len(line) == 2} - {user})
    if strangers:
        return f"jobs ran as {', '.join(strangers)}, not as {user}", "Users and their numbers differ between login pods and workers."
    if len(nodes) != task.nodes or not known.issuperset(nodes):
        said = f"files of {len(nodes)} of {task.nodes} nodes are in the home"
        return said, "The home that jobs write to is not the one of the login node: look at storage.home."
    return f"{fold(nodes)}, each with a file in the home", ""


def _judge_gpus(task: Task, result: Result) -> tuple[str, str]:
    lines = result.output.splitlines()
    counts = {word: sum(line.startswith(f"{word} ") for line in lines) for word in ("ours", "refused", "driver")}
    visible = next((line.removeprefix("visible ") for line in lines if line.startswith("visible ")), "")
    count = len([each for each in visible.split(",") if each])
    said = f"asked for {task.asked}: {count} visible, {counts['ours']} open, {counts['refused']} refused"
    if counts["driver"]:
        said += f", {counts['driver']} in nvidia-smi"
    devices = counts["ours"] + counts["refused"]
    wrong = count != task.asked or (devices and counts["ours"] != task.asked) or (counts["driver"] and counts["driver"] != task.asked)
    return said, "The job sees other GPUs than it got: look at gres.conf and ConstrainDevices." if wrong else ""


def _judge_nccl(task: Task, result: Result) -> tuple[str, str]:
    assert task.node_set
    found = _NCCL_ROW.findall(result.output)
    if not found:
        return _last(
            result.output
        ), "all_reduce_perf printed no figure. Was it built for this CUDA? docs/use/environment.md has the recipe."
    _, figure, wrong = max(found, key=lambda row: int(row[0]))
    model = task.node_set.model
    least = least_gb_per_s(model)
    said = f"all-reduce over {task.asked} GPUs: {float(figure):.0f} GB/s"
    if wrong.strip("N/A0"):
        return f"{said}, {wrong} wrong values", "A GPU or a link computes wrong values: take the node out, and run `dcgmi diag -r 3` on it."
    if least is None:
        return f"{said}; no figure is known for {model or 'GPUs without a type'}", ""
    remedy = (
        f"{model} reach {least:.0f} GB/s. `nvidia-smi nvlink -s` on the node shows links that are down, `nvidia-smi topo -m` the paths."
    )
    return f"{said}, at least {least:.0f} expected", "" if float(figure) >= least else remedy


def judge_missing(tasks: Sequence[Task], results: Mapping[str, Result]) -> list[Row]:
    """Rows for what was not checked, as the jobs' output shows: a driver, and no nccl-tests to run on it."""
    there = {task.name for task in tasks}
    return [
        Row(f"NCCL on {task.node_set.name}", None, "the root has no all_reduce_perf", "docs/use/environment.md: nccl-tests.")
        for task in tasks
        if task.node_set and task.name.startswith("gpus-") and _has_links(task.node_set)
        if f"nccl-{task.node_set.name}" not in there and re.search("^driver ", results[task.name].output, re.MULTILINE)
    ]


def judge_files(rows: Sequence[Row], tasks: Sequence[Task]) -> int:
    """How many nodes had a file in the shared home."""
    passed = {row.title for row in rows if row.passed}
    return sum(task.nodes for task in tasks if task.name.startswith("hello-") and task.title in passed)


def judge_accounting(facts: Facts, jobs: Sequence[str], states: Mapping[str, str]) -> Row:
    """Whether accounting has all jobs as they ended. `states` is what it has."""
    title = "accounting"
    if not facts.has_accounting:
        return Row(title, None, "accounting is off (accounting.enabled)")
    done = [job for job in jobs if states.get(job) == "COMPLETED"]
    if len(done) == len(jobs):
        return Row(title, True, f"all {len(jobs)} jobs are recorded")
    said = f"{len(done)} of {len(jobs)} jobs are recorded as completed"
    return Row(title, False, said, "What slurmdbd says: kubectl logs of the pod with the component slurmdbd.")


def _end(text: str) -> str:
    """The last lines, each with a line feed."""
    return "".join(f"{line}\n" for line in text.strip().splitlines()[-_SHOWN:])


def _last(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
