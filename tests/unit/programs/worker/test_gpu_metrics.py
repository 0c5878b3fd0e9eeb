"""Metrics of simulated GPUs: DCGM's names, values by what the job's processes use, and the script that says which job has which GPU."""

import subprocess
from pathlib import Path

import pytest

from configs.load import load_cluster
from configs.render import gpu_jobs
from programs.worker.gpu_metrics import JOBS, read_jobs, read_use, render
from slurm import prologs
from tests.support.components.program import ROOT, stack_config
from tests.support.programs.metrics.recorded import samples


def page(
    jobs: dict[int, str], before: dict[str, tuple[float, float]], use: dict[str, tuple[float, float]], seconds: float = 10
) -> dict[str, float]:
    found = samples(render("gpu-0", "h100", 2, jobs, before, use, seconds))
    return {
        f"{name.removeprefix('DCGM_FI_DEV_')} {dict(labels)['gpu']} {dict(labels).get('hpc_job', '')}": value
        for (name, labels), value in found.items()
    }


def test_idle_gpu_has_all_metrics_and_no_job() -> None:
    found = samples(render("gpu-0", "h100", 1, {}, {}, {}, 10))
    assert {name for name, _ in found} == {f"DCGM_FI_DEV_{name}" for name in ("GPU_UTIL", "FB_USED", "FB_FREE", "GPU_TEMP", "POWER_USAGE")}
    [labels] = {labels for _, labels in found}
    assert dict(labels) == {"gpu": "0", "UUID": "GPU-simulated-gpu-0-0", "device": "nvidia0", "modelName": "h100", "Hostname": "gpu-0"}


@pytest.mark.parametrize(
    ("jobs", "util", "used"),
    [
        pytest.param({0: "7"}, (80, 0), (100, 0), id="one-gpu"),
        pytest.param({0: "7", 1: "7"}, (40, 40), (50, 50), id="both"),
        pytest.param({}, (0, 0), (0, 0), id="nobody"),
    ],
)
def test_gpu_is_as_busy_as_its_job(jobs: dict[int, str], util: tuple[int, int], used: tuple[int, int]) -> None:
    found = page(jobs, {"7": (100, 90)}, {"7": (108, 100), "8": (500, 500)})
    for gpu in (0, 1):
        job = jobs.get(gpu, "")
        assert (found[f"GPU_UTIL {gpu} {job}"], found[f"FB_USED {gpu} {job}"]) == (util[gpu], used[gpu])


@pytest.mark.parametrize(("before", "seconds"), [pytest.param({}, 10, id="new-job"), pytest.param({"7": (0, 0)}, 0, id="first-look")])
def test_what_is_not_known_yet_is_no_load(before: dict[str, tuple[float, float]], seconds: float) -> None:
    assert page({0: "7"}, before, {"7": (1000, 1)}, seconds)["GPU_UTIL 0 7"] == 0


def test_processes_of_a_job_are_summed_up(tmp_path: Path) -> None:
    for process, job, ticks in (("10", b"7", 100), ("11", b"7", 200), ("12", b"", 400)):
        (tmp_path / process).mkdir()
        (tmp_path / process / "environ").write_bytes(b"A=1\0" + (b"SLURM_JOB_ID=" + job + b"\0" if job else b""))
        fields = ["S", *["0"] * 10, str(ticks), "0", *["0"] * 8, "256"]
        (tmp_path / process / "stat").write_text(f"{process} (a ) b) {' '.join(fields)}")
    (tmp_path / "13").mkdir()  # has ended
    assert read_use(str(tmp_path)) == {"7": (3.0, 2.0)}


def script(folder: Path) -> Path:
    """The rendered script, with its folder elsewhere."""
    stack = stack_config("dev")
    text = gpu_jobs.render(load_cluster(stack, ROOT, "Pulumi.dev.yaml"))[prologs.GPU_JOBS]
    assert f"folder={JOBS}\n" in text
    made = folder / "script.sh"
    made.write_text(text.replace(f"folder={JOBS}\n", f"folder={folder}/gpu-jobs\n"))
    return made


def run(made: Path, context: str, job: str, gpus: str) -> None:
    given = {"SLURM_SCRIPT_CONTEXT": f"{context}_slurmd", "SLURM_JOB_ID": job, **({"SLURM_JOB_GPUS": gpus} if gpus else {})}
    assert subprocess.run(["sh", str(made)], env=given, check=False, capture_output=True).returncode == 0


def test_prolog_notes_the_job_and_its_epilog_removes_it(tmp_path: Path) -> None:
    made, folder = script(tmp_path), str(tmp_path / "gpu-jobs")
    run(made, "prolog", "7", "0,2")
    run(made, "prolog", "8", "1")
    run(made, "prolog", "9", "")
    assert read_jobs(folder, 4) == {0: "7", 1: "8", 2: "7"}
    run(made, "epilog", "7", "0,2")
    assert read_jobs(folder, 4) == {1: "8"}


def test_late_epilog_leaves_the_next_job(tmp_path: Path) -> None:
    made, folder = script(tmp_path), str(tmp_path / "gpu-jobs")
    run(made, "prolog", "7", "0")
    run(made, "prolog", "8", "0")
    run(made, "epilog", "7", "0")
    assert read_jobs(folder, 1) == {0: "8"}


def test_script_never_fails_a_job(tmp_path: Path) -> None:
    made = script(tmp_path)
    (tmp_path / "gpu-jobs").write_text("no folder")
    for context in ("prolog", "epilog"):
        run(made, context, "7", "0,../x")
