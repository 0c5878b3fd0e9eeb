"""What a preview tells, how dangerous a change is, and how text, Markdown and JSON say it."""

import json
from dataclasses import replace

import pytest

from changes import printed
from changes.jobs import Job
from changes.steps import Step
from changes.story import Level, Queue, tell
from tests.unit.changes.lab import CONF, GPUS, NODE_SET, WAITING, files, node_set, running, step

SMALLER = files(CONF, CONF.replace("cpu-[0-3]", "cpu-[0-1]"))
NEW_IMAGE = {"template": {"spec": {"containers": [{"name": "slurmd", "image": "b"}]}}}
MORE_GPUS = files(CONF, CONF.replace("h100:4", "h100:8"))
CANCELLING = {
    "apiVersion": "slipway.dev/v1",
    "kind": "NodeSet",
    "metadata": {"name": "gpu", "namespace": "slurm"},
    "spec": {"replicas": 2, "drain": {"action": "Cancel", "deadlineSeconds": 60}},
}
JOBS = Queue((running("1", "alice", "cpu-3"), WAITING))
UNKNOWN = Queue(unknown="no cluster was asked")

LEVELS: dict[str, tuple[list[Step], Queue, Level]] = {
    "nothing": ([step("same", NODE_SET, NODE_SET)], JOBS, Level.NOTHING),
    "a new partition": ([files(CONF, CONF + "PartitionName=new Nodes=cpu-0\n")], JOBS, Level.CHANGES),
    "a new partition, jobs unknown": ([files(CONF, CONF + "PartitionName=new Nodes=cpu-0\n")], UNKNOWN, Level.CHANGES),
    "nodes go under a job, which ends first": ([SMALLER], JOBS, Level.CHANGES),
    "nodes go, and nobody knows the jobs": ([SMALLER], UNKNOWN, Level.DANGEROUS),
    "a roll that waits": ([node_set(**NEW_IMAGE)], JOBS, Level.CHANGES),
    "a roll that waits, jobs unknown": ([node_set(**NEW_IMAGE)], UNKNOWN, Level.CHANGES),
    "a roll that cancels jobs": ([node_set(**NEW_IMAGE, drain={"action": "Cancel", "deadlineSeconds": 60})], JOBS, Level.DANGEROUS),
    "a roll that would cancel jobs, and there are none": (
        [node_set(**NEW_IMAGE, drain={"action": "Cancel", "deadlineSeconds": 60})],
        Queue((WAITING,)),
        Level.CHANGES,
    ),
    "a roll that requeues jobs, jobs unknown": (
        [node_set(**NEW_IMAGE, drain={"action": "Requeue", "deadlineSeconds": 60})],
        UNKNOWN,
        Level.DANGEROUS,
    ),
    "a job that could never run": ([files(CONF, CONF.replace("h100:4", "h100:2"))], Queue((GPUS,)), Level.DANGEROUS),
    "GPUs change under a job, which ends first": ([MORE_GPUS], Queue((running("1", "al", "gpu-0"),)), Level.CHANGES),
    "GPUs change under a job, which its set would cancel": (
        [MORE_GPUS, step("same", CANCELLING, CANCELLING)],
        Queue((running("1", "al", "gpu-0"),)),
        Level.DANGEROUS,
    ),
    "steps would be interrupted": ([files(CONF, CONF + "AuthType=auth/slurm\n")], JOBS, Level.DANGEROUS),
}


@pytest.mark.parametrize(("steps", "queue", "level"), LEVELS.values(), ids=LEVELS)
def test_level_says_whether_something_could_be_lost(steps: list[Step], queue: Queue, level: Level) -> None:
    assert tell(steps, queue).level == level


def test_data_that_goes_is_dangerous() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "home", "namespace": "slurm"}}
    told = tell([step("delete", claim, {})], JOBS)
    assert (told.level, told.dangers) == (Level.DANGEROUS, ("PersistentVolumeClaim slurm/home: the claim and the data on its volume",))


def test_data_that_is_retained_is_not_dangerous() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "home", "namespace": "slurm"}}
    assert tell([replace(step("delete", claim, {}), is_retained=True)], JOBS).level == Level.CHANGES


def test_text_tells_what_goes_whose_jobs_are_there_and_when_the_last_ends() -> None:
    steps = [SMALLER, node_set(replicas=2)]
    assert printed.text(tell(steps, JOBS)) == [
        "",
        "What changes in Slurm, and what each change needs:",
        "  nodes       cpu-[2-3]       removed: needs the end of the jobs there; slurmctld keeps its old files until then",
        "  partitions  partition main  loses cpu-[2-3]: needs reconfigure",
        "",
        "What happens to running pods and jobs:",
        "  lab-slurm-config: slurmctld reads the new files within seconds, and hands them on; no pod restarts for it",
        "  NodeSet cpu: 4 to 2 nodes; those that go are drained first",
        "",
        "The jobs that are there now:",
        "  cpu-[2-3] leave for good: 1 running job (alice 1); the last ends by 2033-05-18 03:33 UTC; they end first",
        "  all pending jobs that could run can still run after this change, judging by slurm.conf",
    ]


def test_set_that_shrinks_in_range_leaves_the_choice_to_the_controller() -> None:
    [fate] = tell([node_set(replicas=3, ordinals=4)], JOBS).affected
    assert (fate.why, fate.most, fate.jobs) == ("scaled in", 1, 1)


def test_deleted_node_set_and_its_lines_are_told_once() -> None:
    gone = files(CONF, CONF.replace("NodeName=cpu-[0-3] CPUs=4 RealMemory=1000 State=CLOUD\n", ""))
    told = tell([gone, step("delete", NODE_SET, {})], JOBS)
    assert [(fate.why, len(fate.nodes)) for fate in told.affected] == [("removed", 4)]


def test_new_hardware_with_new_pods_is_a_roll_and_without_them_a_resize() -> None:
    larger = files(CONF, CONF.replace("RealMemory=1000", "RealMemory=1500"))
    assert [fate.why for fate in tell([larger, node_set(**NEW_IMAGE)], JOBS).affected] == ["rolled"]
    assert [fate.why for fate in tell([larger], JOBS).affected] == ["resized"]


def test_unknown_jobs_are_said_with_the_reason() -> None:
    assert "  unknown: no cluster was asked" in printed.text(tell([SMALLER], UNKNOWN))


def test_other_files_are_named() -> None:
    step_ = files(CONF, CONF, gres_conf=("a", "b"), cgroup_conf=(None, "c"))
    assert [(item.subject, item.change) for item in tell([step_], JOBS).items] == [("cgroup.conf", "added"), ("gres.conf", "changed")]


def test_new_cluster_is_not_told_as_a_change_of_slurm() -> None:
    new = step("create", {}, {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {"slurm.conf": CONF}})
    told = tell([new], Queue())
    assert (told.items, told.level, told.concerns_jobs) == ((), Level.CHANGES, False)


def test_markdown_is_a_table_with_the_verdict_first() -> None:
    said = printed.markdown(tell([SMALLER], UNKNOWN), "slipway/dev", "1 to update")
    assert said.splitlines()[0] == "### slipway/dev: **dangerous**"
    assert "| nodes | `cpu-[2-3]` | removed | the end of the jobs there;" in said


def test_json_holds_the_story_with_sources() -> None:
    said = json.loads(json.dumps(printed.as_json(tell([SMALLER], JOBS))))
    assert said["level"] == "changes"
    assert said["slurm"][0] | {"effect": ""} == {
        "topic": "nodes",
        "subject": "cpu-[2-3]",
        "change": "removed",
        "needs": "the end of the jobs there",
        "effect": "",
        "source": "slurm.conf(5) of 26.05",
        "nodes": "cpu-[2-3]",
    }
    assert said["jobs"]["affected"][0] | {"policy": ""} == {
        "why": "removed",
        "nodes": "cpu-[2-3]",
        "most": None,
        "policy": "",
        "running": 1,
        "users": {"alice": 1},
        "lastEnd": 2_000_000_000,
    }


def test_long_stories_say_how_much_more_there_is() -> None:
    jobs = tuple(Job(str(number), "bob", is_waiting=True, partitions=("main",), limit_min=2000) for number in range(30))
    conf = CONF.replace("1-00:00:00", "2-00:00:00")
    lines = printed.text(tell([files(conf, CONF)], Queue(jobs)))
    assert "  and 20 more" in lines
    assert "  30 waiting jobs could never run any more" in lines
