"""What a researcher finds at the prompt of a login session and in jobs: the root of images/root, as the dev stack has it."""

import json
import shlex
from dataclasses import dataclass

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.patience import patience
from tests.support.project import ROOT

GUIDES = sorted(page.name for page in (ROOT / "docs" / "use").glob("*.md"))
TASKS = {
    "gcc": ("printf 'int main(){return 0;}' | gcc -x c - -o /tmp/a.out && /tmp/a.out && echo ran", "ran"),
    "g++": (
        "printf '#include <vector>\\nint main(){return std::vector<int>().size();}' | g++ -x c++ - -o /tmp/b.out && echo built",
        "built",
    ),
    "gfortran": ("printf 'print *,40+2\\nend\\n' | gfortran -x f95 - -o /tmp/c.out && /tmp/c.out", "42"),
    "cmake-with-ninja": (
        "rm -rf /tmp/cm && mkdir /tmp/cm && cd /tmp/cm && echo 'int main(){return 0;}' > a.c && "
        "printf 'cmake_minimum_required(VERSION 3.20)\\nproject(a C)\\nadd_executable(a a.c)\\n' > CMakeLists.txt && "
        "cmake -G Ninja . >/dev/null && ninja && ./a && echo built",
        "built",
    ),
    "both-mpis-side-by-side": (
        "mpicc -show; module load mpi/mpich; mpicc -show; module load mpi/openmpi; mpicc -show",
        "-lopen_mpi|-lmpich|-lopen_mpi",
    ),
    "headers-of-hwloc-and-numa": ("printf '#include <hwloc.h>\\n#include <numa.h>\\n' | gcc -x c -fsyntax-only - && echo there", "there"),
    "headers-of-slurm": ("printf '#include <slurm/slurm.h>\\n' | gcc -x c -fsyntax-only - && echo there", "there"),
    "manual-of-sbatch": ("man -w sbatch slurm.conf", "/usr/share/man/man1/sbatch.1.gz|/usr/share/man/man5/slurm.conf.5.gz"),
    "manual-of-libc": ("man 3 printf 2>/dev/null | head -1", "printf(3)"),
    "manuals-by-word": ("whatis sbatch", "Submit a batch script to Slurm"),
    "manuals-of-our-own": (
        "for page in seff mpirun mpiexec mpicc slipway; do man $page | head -1; done",
        "SEFF|MPIRUN|MPIRUN|MPICC|SLIPWAY",
    ),
    "guides": ("cd /usr/share/doc/slipway && ls && head -1 glossary.md", "|".join([*GUIDES, "# Glossary"])),
    "guides-named-at-login": (
        "SSH_TTY=x HOME=/nowhere sh /etc/profile.d/zz-slipway-welcome.sh",
        "man slipway|/usr/share/doc/slipway|slipway-info",
    ),
    "what-this-cluster-has": ("slipway-info", "main*|gpu:h100:4|research|/home|/shared/projects|man slipway"),
    "scratch-is-no-shared-folder": (
        "touch /scratch/mine && ls /tmp/mine; rm /tmp/mine; slipway-info | grep -c /scratch || true",
        "/tmp/mine|0",
    ),
    "cron-is-a-hint": ("crontab -l 2>&1; echo end", "Use scrontab|end"),
    "zsh": ("zsh -c 'module --terse avail 2>&1; print $path'", "mpi/mpich|.local/bin"),
    "terminals-that-stay": (
        "tmux -L t new-session -d 'sleep 60' && tmux -L t ls && screen -dmS s sleep 60 && "
        "timeout 60 bash -c 'until screen -ls | grep -o Detached; do sleep 0.1; done'; "
        "tmux -L t kill-server; screen -S s -X quit",
        "1 windows|Detached",
    ),
    "editors": ("vim --version | head -1; nano --version | head -1", "VIM - Vi IMproved|GNU nano"),
    "locale-of-a-client": ("LC_ALL=de_DE.UTF-8 perl -e 'print 1' 2>&1", "1"),
    "python": ("python -c 'import sys; print(sys.version_info > (3, 13))'; uv --version; pip --version", "True|uv 0.|pip "),
    "debuggers": ("gdb -batch -ex run --args true; strace -c -o /dev/null true && echo traced", "exited normally|traced"),
    "small-tools": ("for each in wget jq unzip file lsof bc htop git git-lfs tree; do command -v $each || echo no $each; done", "!no "),
    "pbs-names": ("qstat", "Job id"),
    "tools-of-containers": (
        "skopeo --version; umoci --version; mksquashfs -version | head -1; unsquashfs -version | head -1",
        "skopeo|umoci|mksquashfs|unsquashfs",
    ),
    "completion-of-options": ("bash -lic '_comp_load sbatch; complete -p sbatch' 2>/dev/null", "sbatch"),
}  # fmt: skip
"""Command line, and what is in its output in this order, separated by bars; after `!`, what is not."""


@dataclass(frozen=True)
class Done:
    """One task."""

    code: int
    output: str


@pytest.fixture(scope="module")
def done(deployed: DevStack) -> dict[str, Done]:
    """All tasks, in one session, each in a login shell as a person has it."""
    program = """
import json, subprocess, sys
def run(line):
    done = subprocess.run(["bash", "-lc", line], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=float(sys.argv[2]))
    return done.returncode, done.stdout + done.stderr
print(json.dumps({name: run(line) for name, line in json.loads(sys.argv[1]).items()}))
"""
    lines = json.dumps({name: line for name, (line, _) in TASKS.items()})
    said = deployed.ssh(shlex.join(["python3", "-c", program, lines, str(120 * patience())]), timeout_s=400)
    return {name: Done(*each) for name, each in json.loads(said).items()}


@pytest.mark.parametrize("task", TASKS)
def test_everyday_task_works_at_the_first_login(task: str, done: dict[str, Done]) -> None:
    wanted, found = TASKS[task][1], done[task]
    if wanted.startswith("!"):
        assert wanted[1:] not in found.output
        return
    assert found.code == 0, found.output
    rest = found.output
    for part in wanted.split("|"):
        assert part in rest, found.output
        rest = rest.partition(part)[2]


PROBE = """#!/bin/bash
umask
case ":$PATH:" in *":$HOME/.local/bin:"*) echo local;; *) echo "$PATH";; esac
module --terse avail 2>&1 | grep -c mpi/mpich
[ "$PWD" = "$(pwd -P)" ] && echo here || echo "$PWD"
locale charmap
echo "gpus ${CUDA_VISIBLE_DEVICES-none}"
"""
SAME = ["0002", "local", "1", "here", "UTF-8"]
"""Lines that each way in prints; the last line is GPUs."""
WAYS = {
    "ssh-command": ("source ./probe.sh", "none"),
    "ssh-script": ("./probe.sh", "none"),
    "login-shell": ("bash -lc ./probe.sh", "none"),
    "tmux": (
        "tmux -L w new-session -d './probe.sh >w.out; tmux -L w wait-for -S done' && timeout 300 tmux -L w wait-for done; cat w.out",
        "none",
    ),
    "sbatch-from-an-ssh-command": ("sbatch --wait --gpus=1 --output=w.out probe.sh >/dev/null; cat w.out", "0"),
    "srun": ("srun --gpus=1 --quiet ./probe.sh", "0"),
    "ssh-to-a-node": (
        "job=$(sbatch --parsable --gpus=1 --output=/dev/null --wrap 'sleep infinity'); node=; "
        'until [ -n "$node" ]; do node=$(squeue -h -j $job -t R -o %N); sleep 0.2; done; '
        "srun --jobid=$job --overlap --quiet true; ssh $node ./probe.sh; scancel $job",
        "0",
    ),
}
"""Command line of each way in, and the GPUs that it sees. Written for a session of `ssh LOGIN COMMAND`."""


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_has_the_same_environment(stack: DevStack, way: str) -> None:
    command, gpus = WAYS[way]
    stack.ssh("cat >probe.sh && chmod 755 probe.sh", stdin=PROBE)
    assert stack.ssh(command).splitlines() == [*SAME, f"gpus {gpus}"]


LAUNCHERS = ("srun", "mpirun", "mpiexec")
MODULES = {"none": "Open MPI", "mpi/openmpi": "Open MPI", "mpi/mpich": "MPICH"}


@pytest.fixture(scope="module")
def launched(deployed: DevStack) -> str:
    """The output of one job on two nodes that builds and starts a program with each module by each launcher."""
    script = """#!/bin/bash -l
    for kind in none mpi/openmpi mpi/mpich; do
      module purge; [ $kind = none ] || module load $kind
      mpicc -o ranks.bin ranks.c
      for launcher in srun mpirun mpiexec; do
        timeout 300 $launcher -n 2 ./ranks.bin | sed "s#^#$kind $launcher #"
      done
    done
    """
    program = """
    #include <mpi.h>
    #include <stdio.h>
    int main(int count, char **words) {
      char version[MPI_MAX_LIBRARY_VERSION_STRING]; int length, rank, size;
      MPI_Init(&count, &words);
      MPI_Get_library_version(version, &length); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
      version[8] = 0;
      if (rank == 0) printf("%d ranks of %s\\n", size, version);
      MPI_Finalize();
    }
    """
    deployed.ssh("cat >ranks.c", stdin=program)
    deployed.ssh("cat >ranks.sh", stdin=script.replace("\n    ", "\n"))
    return deployed.ssh(
        "sbatch --wait --nodes=2 --ntasks=2 --mem-per-cpu=300 --output=ranks.out ranks.sh >/dev/null; cat ranks.out", timeout_s=400
    )


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_starts_every_mpi(launched: str, module: str, launcher: str) -> None:
    assert f"{module} {launcher} 2 ranks of {MODULES[module][:8]}" in launched, launched


def test_module_of_a_session_and_of_a_batch_script_are_the_same(stack: DevStack) -> None:
    script = "#!/bin/bash -l\nmodule load mpi/mpich\nwhich mpicc\n"
    stack.ssh(f"printf %s {shlex.quote(script)} > module.sh")
    assert stack.ssh("sbatch --wait --output=module.out module.sh >/dev/null; cat module.out") == "/opt/mpi/mpich/bin/mpicc\n"


def test_module_loaded_in_a_session_is_loaded_in_a_login_shell_batch_job(stack: DevStack) -> None:
    script = "#!/bin/bash -l\nwhich mpicc\nmodule --terse list 2>&1\n"
    stack.ssh(f"printf %s {shlex.quote(script)} > module.sh")
    submit = "module load mpi/mpich; sbatch --wait --output=module.out module.sh >/dev/null"
    assert stack.ssh(f"bash -lc {shlex.quote(submit)}; cat module.out") == "/opt/mpi/mpich/bin/mpicc\nmpi/mpich\n"


def _seconds(text: str) -> int:
    """Of HH:MM:SS."""
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def test_seff_tells_what_a_job_used_of_what_it_had(stack: DevStack) -> None:
    program = "import os, time\nprint(os.environ['SLURM_JOB_ID'])\nx = bytearray(64 << 20)\nwhile time.process_time() < 2: pass"
    job = stack.ssh(f"srun --mem=256 python3 -c {shlex.quote(program)}").strip()
    eventually("its end in the accounting", lambda: stack.ssh(f"sacct -nXP -j {job} -o State") == "COMPLETED\n", 60)
    lines = stack.ssh(f"seff {job}").splitlines()
    figures = dict(line.split(": ", 1) for line in lines)
    assert figures["State"] == "COMPLETED (exit code 0)"
    assert figures["Memory Efficiency"].endswith("of 256.00 MB")
    assert 64 <= float(figures["Memory Utilized"].removesuffix(" MB")) <= 256
    share, _, had = figures["CPU Efficiency"].partition("% of ")
    used_s = _seconds(figures["CPU Utilized"])
    assert used_s >= 2
    # How long these seconds took is the machine's affair: other tests want its processors, too.
    assert float(share) / 100 * _seconds(had.split()[0]) == pytest.approx(used_s + 0.5, abs=0.51)


def test_job_has_a_scratch_of_its_own_that_is_gone_after_it(stack: DevStack) -> None:
    full = "dd if=/dev/zero of=/scratch/full bs=1M count=100 2>&1 | grep -o 'No space left on device'; ls /scratch"
    assert stack.ssh(f"srun --nodelist=gpu-0 bash -c {shlex.quote(full)}").splitlines() == ["No space left on device", "full"]
    assert stack.ssh("srun --nodelist=gpu-0 ls -A /scratch") == ""
    eventually(
        "no disk of a job", lambda: "scratch.disk" not in stack.worker("gpu-0", "losetup --list --noheadings --output BACK-FILE"), 60
    )
