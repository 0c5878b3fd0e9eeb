"""Which smoke jobs a cluster gets, and what their output means."""

from collections.abc import Sequence

import pytest

from cli.check.facts import Facts, Node, NodeSetFacts, read_facts, set_of
from cli.check.tasks import Result, Row, Task, judge, judge_accounting, judge_missing, plan

ANSWER = """Warning: something that a login file prints
user|alice
folder|/home/alice/.slipway-check.x
node|cpu-0|main*|idle|(null)
node|cpu-1|main*|mixed|(null)
node|gpu-0|main*|allocated|gpu:h100:4(S:0-1)
node|gpu-0|gpu|allocated|gpu:h100:4(S:0-1)
node|big-mem-0|slow|idle~|(null)
node|lost-0|slow|down*|gpu:2
accounting|accounting_storage/slurmdbd
tool|mpicc
tool|apt-get
tool|gcc
tool|mksquashfs
tool|container-image
sudo|
"""


def facts(text: str = ANSWER) -> Facts:
    return read_facts(text)


def titles(rows: Sequence[Row]) -> dict[str, bool | None]:
    return {row.title: row.passed for row in rows}


def test_each_set_is_checked_once_preferably_in_the_default_partition() -> None:
    found = {each.name: (each.partition, [node.name for node in each.nodes], each.gpus, each.others) for each in facts().node_sets}
    assert found == {
        "cpu": ("main", ["cpu-0", "cpu-1"], 0, ("gpu-0",)),
        "gpu": ("main", ["gpu-0"], 4, ("cpu-0", "cpu-1")),
        "big-mem": ("slow", ["big-mem-0"], 0, ("lost-0",)),
        "lost": ("slow", ["lost-0"], 2, ("big-mem-0",)),
    }


@pytest.mark.parametrize(("node", "name"), [("cpu-0", "cpu"), ("big-mem-12", "big-mem"), ("node7", "node7")])
def test_set_of_a_node(node: str, name: str) -> None:
    assert set_of(node) == name


def test_an_answer_that_is_not_whole_is_no_cluster() -> None:
    with pytest.raises(KeyError):
        facts("user|alice\n")


def test_plan_asks_each_set_for_what_it_has_and_names_what_takes_no_jobs() -> None:
    tasks, rows = plan(facts())
    by_name = {task.name: task for task in tasks}
    assert list(by_name) == ["hello-cpu", "hello-gpu", "gpus-gpu", "hello-big-mem", "mpi", "container", "package"]
    assert by_name["hello-cpu"].options == ("--partition=main", "--nodes=2", "--ntasks-per-node=1", "--time=10", "--exclude=gpu-0")
    assert "--gpus=3" in by_name["gpus-gpu"].options
    assert by_name["hello-big-mem"].nodes == 1
    assert [(row.title, row.passed, row.said) for row in rows] == [("hello on lost", False, "no node takes jobs: down*")]


@pytest.mark.parametrize(
    ("change", "title", "said"),
    [
        pytest.param(("tool|mpicc\n", ""), "MPI over two nodes", "the root has no mpicc", id="no-compiler"),
        pytest.param(("tool|gcc\n", ""), "MPI over two nodes", "the root has no gcc", id="only-the-wrapper"),
        pytest.param(("node|cpu-1|main*|mixed|(null)\n", ""), "MPI over two nodes", "no node set has two nodes that are up", id="one-node"),
        pytest.param(("tool|container-image\n", ""), "container", "srun has no --container-image", id="no-containers"),
        pytest.param(("tool|mksquashfs\n", ""), "container", "the root has no mksquashfs", id="no-tool-for-images"),
        pytest.param(("sudo|\n", "sudo|a password is required\n"), "package for jobs", "sudo refuses alice", id="no-admin"),
    ],
)
def test_what_cannot_be_checked_is_said_and_is_no_failure(change: tuple[str, str], title: str, said: str) -> None:
    _, rows = plan(facts(ANSWER.replace(*change)))
    [row] = [row for row in rows if row.title == title]
    assert row.passed is None
    assert said in row.said


def test_nccl_runs_on_all_gpus_of_a_node_where_the_root_has_its_tests() -> None:
    tasks, _ = plan(facts(ANSWER.replace("tool|gcc", "tool|all_reduce_perf\ntool|gcc")))
    [nccl] = [task for task in tasks if task.name == "nccl-gpu"]
    assert "--gpus=4" in nccl.options


def test_mig_instances_are_counted_together_and_have_no_links_to_measure() -> None:
    answer = ANSWER.replace("tool|gcc", "tool|all_reduce_perf\ntool|gcc").replace("gpu:h100:4", "gpu:h100_3g.40gb:4,gpu:h100_1g.10gb:8")
    tasks, _ = plan(facts(answer))
    assert [task.asked for task in tasks if task.name == "gpus-gpu"] == [11]
    assert judge_missing(tasks, {task.name: done(f"{OPEN}driver   MIG 1g.10gb\n") for task in tasks}) == []
    assert not [task for task in tasks if task.name.startswith("nccl")]


def test_driver_without_nccl_tests_is_said() -> None:
    tasks, _ = plan(facts())
    rows = judge_missing(tasks, {task.name: done(f"{OPEN}driver GPU 0\n") for task in tasks})
    assert titles(rows) == {"NCCL on gpu": None}
    assert judge_missing(tasks, {task.name: done(OPEN) for task in tasks}) == []


CPU = NodeSetFacts("cpu", "main", (Node("cpu-0", "idle", 0), Node("cpu-1", "idle", 0)), ())
HELLO = Task("hello-cpu", "hello on cpu", (), "", nodes=2, node_set=CPU)
GPUS = Task("gpus-gpu", "GPUs on gpu", (), "", asked=3)
CONTAINER = Task("container", "container", (), "")
MPI = Task("mpi", "MPI over two nodes", (), "", nodes=2)


def done(output: str = "", files: str = "") -> Result:
    return Result(job="7", state="COMPLETED", output=output, files=files)


NCCL = {
    model: Task("nccl-gpu", "NCCL on gpu", (), "", node_set=NodeSetFacts("gpu", "gpu", (Node("gpu-0", "idle", 8, model),), ()), asked=8)
    for model in ("h100", "l4", "")
}
PERF = """# nThread 1 nGpus 8 minBytes 1073741824 maxBytes 4294967296 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   4221.2  254.37  445.14      0   4213.5  254.83  445.96      0
  4294967296    1073741824     float     sum      -1    15938  269.47  471.58      0    15951  269.26  471.21      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 458.473
"""
"""What all_reduce_perf prints on a node with eight H100 (nccl-tests' format)."""
FILES = "cpu-0 alice\ncpu-1 alice\n"
OPEN = "visible 0,1,2\nours /dev/nvidia0\nours /dev/nvidia1\nours /dev/nvidia2\nrefused /dev/nvidia3\n"


@pytest.mark.parametrize(
    ("task", "result", "passed", "said"),
    [
        pytest.param(HELLO, done(files=FILES), True, "cpu-[0-1]", id="hello"),
        pytest.param(HELLO, done(files="cpu-0 alice\n"), False, "files of 1 of 2 nodes", id="home-is-not-shared"),
        pytest.param(HELLO, done(files="cpu-0 bob\ncpu-1 bob\n"), False, "ran as bob, not as alice", id="other-numbers"),
        pytest.param(HELLO, done(files="cpu-0 alice\nx-1 alice\n"), False, "files of 2 of 2", id="strange-node"),
        pytest.param(GPUS, done(output=OPEN), True, "3 visible, 3 open, 1 refused", id="gpus"),
        pytest.param(GPUS, done(output=OPEN.replace("refused", "ours")), False, "4 open, 0 refused", id="no-isolation"),
        pytest.param(GPUS, done(output="visible 0,1\n"), False, "2 visible", id="too-few"),
        pytest.param(GPUS, done(output="visible 0,1,2\n"), True, "3 visible", id="no-device-files"),
        pytest.param(GPUS, done(output=f"{OPEN}driver GPU 0\n"), False, "1 in nvidia-smi", id="driver-sees-others"),
        pytest.param(MPI, done(output="ranks 2 sum 3\n"), True, "ranks 2 sum 3", id="mpi"),
        pytest.param(NCCL["h100"], done(output=PERF), True, "all-reduce over 8 GPUs: 472 GB/s, at least 338 expected", id="nccl"),
        pytest.param(NCCL["h100"], done(output=PERF.replace("471.58", " 89.01")), False, "89 GB/s", id="a-link-is-down"),
        pytest.param(NCCL["h100"], done(output=PERF.replace("471.58      0", "471.58     64")), False, "64 wrong values", id="wrong-sums"),
        pytest.param(NCCL["l4"], done(output=PERF), True, "472 GB/s; no figure is known for l4", id="pcie"),
        pytest.param(NCCL[""], done(output=PERF), True, "no figure is known for GPUs without a type", id="no-model"),
        pytest.param(NCCL["h100"], done(output="Test NCCL failure\n"), False, "Test NCCL failure", id="nccl-fails"),
        pytest.param(CONTAINER, done(output="file of the image\n"), True, "a step ran in an image", id="container"),
        pytest.param(CONTAINER, done(output="no such file\n"), False, "no such file", id="outside-its-image"),
        pytest.param(MPI, done(output="ranks 1 sum 1\nranks 1 sum 1\n"), False, "ranks 1", id="singletons"),
        pytest.param(MPI, Result(output="sbatch: error: Invalid account\n"), False, "Invalid account", id="refused"),
        pytest.param(MPI, Result(job="7", state="PENDING", reason="Resources"), False, "job 7 waited: Resources", id="waits"),
        pytest.param(MPI, Result(job="7", state="RUNNING"), False, "did not end in time", id="hangs"),
        pytest.param(MPI, Result(job="7", state="FAILED", output="a\nb\n"), False, "job 7 is FAILED", id="fails"),
    ],
)
def test_what_a_job_shows(task: Task, result: Result, passed: bool, said: str) -> None:
    row = judge(task, result, "alice")
    assert row.passed is passed
    assert said in row.said
    assert bool(row.remedy) is not passed, "whoever reads of a failure reads what to do"


def test_simulated_gpus_have_no_bandwidth() -> None:
    assert judge(NCCL["h100"], done(output="no driver\n"), "alice").passed is None


@pytest.mark.parametrize(
    ("states", "passed"),
    [
        pytest.param({"1": "COMPLETED", "2": "COMPLETED"}, True, id="all"),
        pytest.param({"1": "COMPLETED", "2": "RUNNING"}, False, id="late"),
        pytest.param({}, False, id="none"),
    ],
)
def test_accounting_has_every_job(states: dict[str, str], passed: bool) -> None:
    assert judge_accounting(facts(), ["1", "2"], states).passed is passed


def test_accounting_that_is_off_is_no_failure() -> None:
    assert judge_accounting(facts(ANSWER.replace("accounting_storage/slurmdbd", "(null)")), ["1"], {}).passed is None
