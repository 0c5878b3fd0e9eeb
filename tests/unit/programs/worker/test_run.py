"""The worker's programs as processes, with a scontrol and a slurmd that behave as they were measured to on bad days."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.log_lines import as_words
from tests.support.patience import patience

ROOT = Path(__file__).parents[4]
NODE = '{"nodes": [{"name": "gpu-0", "state": ["%s"], "reason": "fan *is loud", "partitions": []}]}'

_AS_GPU_0 = """
import os
os.uname = lambda: type("", (), {"nodename": "gpu-0"})
from programs.worker import stop, stopping
stop._LOG = "/nowhere"
"""


def program(folder: Path, name: str, script: str) -> None:
    made = folder / name
    made.write_text(f"#!/bin/bash\n{script}\n")
    made.chmod(0o755)


def scontrol(folder: Path, *states: str, log: Path) -> None:
    """Answers with one state after the other, the last one for ever, and a reason with half a character; writes down each change."""
    texts = " ".join(f"'{NODE % one.replace('+', chr(34) + ',' + chr(34))}'" for one in states)
    program(
        folder,
        "scontrol",
        f"""if [[ $1 == update ]]; then echo "$*" >> {log}; exit; fi
answers=({texts}); echo >> {log}.asked; at=$(($(wc -l < {log}.asked) - 1))
printf %s "${{answers[at < ${{#answers[@]}} ? at : -1]}}" | tr '*' '\\303'""",
    )


def stop(folder: Path, before: str) -> subprocess.CompletedProcess[str]:
    """The stop hook of node gpu-0, after `before`."""
    return run(folder, f"{_AS_GPU_0}{before}; stop.main()")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLIPWAY_DRAIN_GRACE_S": "20"}
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60 * patience())


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("stopping._STOPPING = '{folder}/stopping'", id="as-ever"),
        pytest.param("stopping._STOPPING = '/nowhere/stopping'", id="disk-is-full"),
    ],
)
def test_stop_hook_waits_for_jobs_whatever_the_reason_says(tmp_path: Path, before: str) -> None:
    log = tmp_path / "changes"
    scontrol(tmp_path, "MIXED+CLOUD", "MIXED+CLOUD+DRAIN", "IDLE+CLOUD+DRAIN", log=log)
    done = stop(tmp_path, before.format(folder=tmp_path))
    assert (done.returncode, log.read_text()) == (0, "update NodeName=gpu-0 State=DRAIN Reason=slipway: pod stopping\n")
    assert "no job is left on gpu-0" in done.stderr.splitlines()[-1]


def test_stop_hook_that_cannot_look_counts_the_node_as_busy(tmp_path: Path) -> None:
    scontrol(tmp_path, "IDLE+DRAIN", log=tmp_path / "changes")
    fails_once = "real = stop.has_steps; stop.has_steps = lambda: setattr(stop, 'has_steps', real) or [][0]"
    done = stop(tmp_path, f"stopping._STOPPING = '{tmp_path}/stopping'; {fails_once}")
    said = [line.partition(": ")[2] for line in as_words(done.stderr).splitlines()]
    assert done.returncode == 0
    assert [line[:30] for line in said] == ["the node counts as busy, as it", "no job is left on gpu-0 (state"]


def test_slurmd_restarted_while_slurm_is_silent_reports_no_new_boot(tmp_path: Path) -> None:
    """With slurm.returnToService below 2, `-b` beside running jobs ends them (measured on 26.05)."""
    log = tmp_path / "slurmd.log"
    program(tmp_path, "scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    program(tmp_path, "munge", "true")
    program(tmp_path, "slurmd", f'echo "$*" >> {log}; (($(wc -l < {log}) < 2)) || kill -TERM $PPID; exit 1')
    code = """
from programs.worker import run
from slurm.scontrol import Node
from slurm.states import node_state
run._AGAIN_S = 0
made = run.Worker("gpu-0", "ctl", True, instance=run.instance("m-1", run._boot()))
made._await_daemons = made._watch = lambda *_: None
made._settle = lambda: Node("gpu-0", node_state(["MIXED", "CLOUD", "POWERING_UP"]))
raise SystemExit(made.run())
"""
    done = run(tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert ["-b" in line.split() for line in log.read_text().splitlines()] == [True, False]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert all(line.endswith(f"--instance-id m-1/{boot}") for line in log.read_text().splitlines())
