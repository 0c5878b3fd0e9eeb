"""docs/use/first-day.md, as a researcher follows it: its own commands, read from the page, in the order of the page.

PyTorch and Jupyter, which are large, are in tests/soak/test_examples.py.
"""

import re
from collections.abc import Iterator

import pytest

from tests.support.cluster.dev_stack import NODE_PORT, ROOT, DevStack, eventually
from tests.support.cluster.guides import follow, number, section
from tests.support.patience import patience

PAGE = "docs/use/first-day.md"
HOME = "examples"


@pytest.fixture(scope="module")
def cluster(deployed: DevStack) -> Iterator[DevStack]:
    """The stack, with the examples copied as the page says."""
    ((login, *others),) = section(PAGE, "Log in")
    assert login.startswith(f"ssh -p {NODE_PORT} ")  # as all of a test's commands get in
    deployed.ssh(f"rm -rf {HOME}")
    said = follow(deployed, others, {})
    assert "main" in said["sinfo"]
    assert "research" in "".join(said.values())
    yield deployed
    deployed.ssh(f"scancel --me; rm -rf {HOME}")


def output(cluster: DevStack, file: str) -> str:
    return cluster.ssh(f"cat {HOME}/{file}")


def test_first_job_is_shown_where_the_page_looks_for_it(cluster: DevStack) -> None:
    (block,) = section(PAGE, "One job")
    at = block.index("sbatch --wrap 'sleep 5; hostname'") + 1
    said = follow(cluster, block[:at], {}, HOME)
    job = str(number(said[block[at - 1]]))
    assert cluster.ssh(f"cat {HOME}/slurm-{job}.out").strip() in ("cpu-0", "cpu-1", "gpu-0", "gpu-1")
    eventually("the job in the accounting", lambda: job in cluster.ssh("sacct --noheader --starttime=today"), 60)
    shown = follow(cluster, block[at:], {"123": job}, HOME)
    assert "JOBID" in shown["squeue --me"]
    assert job in shown["sacct --starttime=today"]
    assert job in shown["seff 123"]


def test_sweep_finds_the_best_rate(cluster: DevStack) -> None:
    (block,) = section(PAGE, "A sweep")
    best = follow(cluster, block, {})[block[-1]].split()
    assert float(best[0]) >= 0.3
    assert float(best[1]) < 0.02
    assert cluster.ssh(f"ls {HOME}/array/sweep-*.out | wc -l").strip() == "8"


def test_stopped_training_is_requeued_and_resumes_from_its_checkpoint(cluster: DevStack) -> None:
    (block,) = section(PAGE, "Longer than the time limit")
    (stop,) = (command for command in re.findall(r"`(scancel [^`]+)`", (ROOT / PAGE).read_text()) if "NUMBER" in command)
    said = lambda: output(cluster, "checkpoint/train.out")  # noqa: E731
    steps = round(60 * patience())  # a fifth of a second each, so that the signal comes during the training
    job = number(follow(cluster, block, {"sbatch": f"STEPS={steps} sbatch"}, state="RUNNING")["sbatch train.sh"])
    eventually("the training", lambda: "begins at step 0" in said(), 60)
    cluster.ssh(stop.replace("NUMBER", str(job)))
    eventually("the job in the queue again", lambda: "queued again" in said() and cluster.job_state(job) == "PENDING", 60)
    # Slurm lets a requeued job wait two minutes; a test does not.
    eventually("its start", lambda: cluster.ssh(f"scontrol update JobId={job} StartTime=now 2>&1", check=False) == "", 60)
    cluster.wait_for_job(job)
    starts = [int(step) for step in re.findall(r"begins at step (\d+)", said())]
    assert len(starts) == 2
    assert starts[1] == int(re.findall(r"saved at step (\d+)", said())[0]) > 0
    assert said().rstrip().endswith(f"done at step {steps}")


@pytest.mark.parametrize(
    ("module", "library"),
    [pytest.param("", "Open MPI v", id="openmpi"), pytest.param("module load mpi/mpich", "MPICH Version:", id="mpich")],
)
def test_mpi_program_runs_on_two_nodes_under_srun(cluster: DevStack, module: str, library: str) -> None:
    (block,) = section(PAGE, "MPI")
    said = follow(cluster, block, {"sbatch pi.sh": f'bash -lc "{module}; sbatch pi.sh"'} if module else {})["cat pi.out"]
    assert not module or f"`{module}`" in (ROOT / PAGE).read_text()
    assert "pi is 3.1415926536\n" in said
    assert f"library: {library}" in said
    assert sorted(re.findall(r"rank (\d) of 4", said)) == ["0", "1", "2", "3"]
    assert len(set(re.findall(r"on (\S+)", said))) == 2


def test_processes_of_a_training_meet_over_two_nodes_and_learn_the_same(cluster: DevStack) -> None:
    numpy, _ = section(PAGE, "Training on several nodes")
    said = follow(cluster, numpy, {})["cat numpy.out"]
    ranks = re.findall(r"^rank (\d) of 4 on (\S+): off by (\S+)$", said, re.MULTILINE)
    assert sorted(rank for rank, _, _ in ranks) == ["0", "1", "2", "3"]
    assert len({node for _, node, _ in ranks}) == 2
    assert all(float(off) < 1e-3 for _, _, off in ranks)


def test_program_of_an_image_reads_the_data_of_the_home_on_two_nodes(cluster: DevStack) -> None:
    (block,) = section(PAGE, "In a container")
    said = sorted(follow(cluster, block, {})["cat words.out"].splitlines())
    assert said == [f"{rank}: /data/rose.txt has 8 words" for rank in (0, 1)]


def test_stages_of_a_pipeline_run_in_their_order(cluster: DevStack) -> None:
    (block,) = section(PAGE, "A pipeline")
    follow(cluster, block, {})
    assert output(cluster, "pipeline/report.out") == "the sum is 500500\n"


def test_stage_that_fails_takes_the_later_ones_out_of_the_queue(cluster: DevStack) -> None:
    (block,) = section(PAGE, "A pipeline")
    cluster.ssh(f"sed -i 's/^seq /false; seq /' {HOME}/pipeline/prepare.sh")
    follow(cluster, block, {}, state="CANCELLED")
