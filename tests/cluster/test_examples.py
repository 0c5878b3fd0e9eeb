"""The examples, as docs/first-day.md has a researcher run them: copied from the root of the cluster, and submitted as they stand.

PyTorch and Jupyter, which are large, are in tests/soak/test_examples.py.
"""

import re
from collections.abc import Iterator

import pytest

from tests.cluster.dev_stack import DevStack, eventually

HOME = "first-day"


@pytest.fixture(scope="module")
def cluster(deployed: DevStack) -> Iterator[DevStack]:
    deployed.ssh(f"rm -rf {HOME} && cp -r /usr/share/slipway/examples {HOME}")
    yield deployed
    deployed.ssh(f"scancel --me; rm -rf {HOME}")


def submit(cluster: DevStack, folder: str, command: str) -> int:
    """The number of the job that a command in an example's folder submits last."""
    return int(re.findall(r"\d+", cluster.ssh(f"cd {HOME}/{folder} && {command}"))[-1])


def output(cluster: DevStack, file: str) -> str:
    return cluster.ssh(f"cat {HOME}/{file}")


def test_sweep_finds_the_best_rate(cluster: DevStack) -> None:
    job = submit(cluster, "array", "sbatch sweep.sh")
    cluster.wait_for_job(job)
    best = cluster.ssh(f"cd {HOME}/array && sort -g -k2 sweep-*.out | head -1").split()
    assert float(best[0]) >= 0.3
    assert float(best[1]) < 0.02
    assert cluster.ssh(f"ls {HOME}/array/sweep-*.out | wc -l").strip() == "8"


def test_training_that_is_told_to_stop_goes_back_to_the_queue_and_on_from_its_checkpoint(cluster: DevStack) -> None:
    job = submit(cluster, "checkpoint", "STEPS=60 sbatch train.sh")
    said = lambda: output(cluster, "checkpoint/train.out")  # noqa: E731
    eventually("the training", lambda: cluster.job_state(job) == "RUNNING" and "begins at step 0" in said(), 60)
    cluster.ssh(f"scancel --signal=USR1 --batch {job}")
    eventually("the job in the queue again", lambda: "queued again" in said() and cluster.job_state(job) == "PENDING", 60)
    # Slurm lets a requeued job wait two minutes; a test does not.
    eventually("its start", lambda: cluster.ssh(f"scontrol update JobId={job} StartTime=now 2>&1", check=False) == "", 60)
    cluster.wait_for_job(job)
    starts = [int(step) for step in re.findall(r"begins at step (\d+)", said())]
    assert len(starts) == 2
    assert starts[1] == int(re.findall(r"saved at step (\d+)", said())[0]) > 0
    assert said().rstrip().endswith("done at step 60")


@pytest.mark.parametrize(
    ("module", "library"),
    [pytest.param("", "Open MPI v", id="openmpi"), pytest.param("module load mpi/mpich; ", "MPICH Version:", id="mpich")],
)
def test_mpi_program_runs_on_two_nodes_under_srun(cluster: DevStack, module: str, library: str) -> None:
    job = submit(cluster, "mpi", f'bash -lc "{module}sbatch pi.sh"')
    cluster.wait_for_job(job)
    said = output(cluster, "mpi/pi.out")
    assert f"pi is 3.1415926536, by {library}" in said
    assert sorted(re.findall(r"rank (\d) of 4", said)) == ["0", "1", "2", "3"]
    assert len(set(re.findall(r"on (\S+)", said))) == 2


def test_processes_of_a_training_meet_over_two_nodes_and_learn_the_same(cluster: DevStack) -> None:
    job = submit(cluster, "training", "sbatch numpy.sh")
    cluster.wait_for_job(job)
    said = output(cluster, "training/numpy.out")
    ranks = re.findall(r"^rank (\d) of 4 on (\S+): off by (\S+)$", said, re.MULTILINE)
    assert sorted(rank for rank, _, _ in ranks) == ["0", "1", "2", "3"]
    assert len({node for _, node, _ in ranks}) == 2
    assert all(float(off) < 1e-3 for _, _, off in ranks)


def test_program_of_an_image_reads_the_data_of_the_home_on_two_nodes(cluster: DevStack) -> None:
    job = submit(cluster, "container", "./build.sh && sbatch job.sh")
    cluster.wait_for_job(job)
    said = sorted(output(cluster, "container/words.out").splitlines())
    assert said == [f"{rank}: /data/rose.txt has 8 words" for rank in (0, 1)]


def test_stages_of_a_pipeline_run_in_their_order(cluster: DevStack) -> None:
    job = submit(cluster, "pipeline", "./submit.sh")
    cluster.wait_for_job(job)
    assert output(cluster, "pipeline/report.out") == "the sum is 500500\n"


def test_stage_that_fails_takes_the_later_ones_out_of_the_queue(cluster: DevStack) -> None:
    cluster.ssh(f"sed -i 's/^seq /false; seq /' {HOME}/pipeline/prepare.sh")
    job = submit(cluster, "pipeline", "./submit.sh")
    cluster.wait_for_job(job, "CANCELLED")
