"""What a researcher does first: log in, sbatch over two nodes, ask for GPUs, run MPI; and what Slurm must guard while they do."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from local.quickstart import SETTINGS
from tests.support.cluster.dev_stack import KEY, NODE_PORT, ROOT, DevStack, eventually
from tests.support.patience import patience

OPEN_EVERY_DEVICE = """#!/bin/bash
for device in /dev/nvidia[0-9]; do
  case $( { : <"$device"; } 2>&1) in *"not permitted"*) echo "refused $device" ;; *) echo "ours $device" ;; esac
done
"""


def test_login_pods_have_a_name_that_users_recognise(stack: DevStack) -> None:
    """In the prompt, and as the node that a job was submitted from."""
    job = stack.hold()
    assert " AllocNode:Sid=dev-login:" in stack.slurm(f"scontrol show job {job} -o")
    stack.let_go()
    stack.wait_for_job(job)
    assert stack.ssh("prompt='\\u@\\h'; echo ${prompt@P}; hostname").split() == ["alice@dev-login", "dev-login"]
    assert "alice" in stack.ssh("salloc --quiet srun --ntasks=1 id -un")  # replicas share the name; answers go to the pod's own address


def test_two_node_job_prints_both_host_names_into_the_shared_home(stack: DevStack) -> None:
    job = stack.submit("#!/bin/bash\nsrun hostname\n", "--partition=main --nodes=2 --ntasks-per-node=1 --output=hosts.out")
    stack.wait_for_job(job)
    hosts = stack.ssh("cat hosts.out").split()
    assert len(set(hosts)) == 2
    assert set(hosts) <= set(stack.nodes())


def test_gpu_job_sees_its_two_devices_and_is_denied_the_others(stack: DevStack) -> None:
    job = stack.submit(OPEN_EVERY_DEVICE, "--gres=gpu:2 --output=gpus.out")
    stack.wait_for_job(job)
    verdicts = [line.split()[0] for line in stack.ssh("cat gpus.out").splitlines()]
    assert sorted(verdicts) == ["ours", "ours", "refused", "refused"]


def test_two_jobs_run_on_one_node_at_once(stack: DevStack) -> None:
    jobs = [stack.hold("--nodelist=cpu-0 --output=/dev/null") for _ in range(2)]
    for job in jobs:
        stack.wait_for_job(job, "RUNNING")
    assert stack.slurm("scontrol show node cpu-0 -o | grep -o 'CPUAlloc=[0-9]*'").strip() == "CPUAlloc=2"
    stack.let_go()
    for job in jobs:
        stack.wait_for_job(job)


def test_two_jobs_share_four_gpus_at_once_and_none_is_in_both(stack: DevStack) -> None:
    """CUDA_VISIBLE_DEVICES counts from 0 in each job, as a job sees no other devices; SLURM_JOB_GPUS has the node's own numbers."""
    stack.ssh("rm -f go")
    script = f"{OPEN_EVERY_DEVICE}echo gpus $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES\nuntil [[ -e go ]]; do sleep 0.5; done\n"
    jobs = [stack.submit(script, f"--nodelist=gpu-0 --gpus=2 --output=half-{half}.out") for half in (1, 2)]
    for job in jobs:
        stack.wait_for_job(job, "RUNNING")
    stack.let_go()
    for job in jobs:
        stack.wait_for_job(job)
    halves = [[line.split() for line in stack.ssh(f"cat half-{half}.out").splitlines()] for half in (1, 2)]
    devices = [line[1] for half in halves for line in half if line[0] == "ours"]
    assert sorted(devices) == [f"/dev/nvidia{number}" for number in range(4)]
    assert sorted(line[1] for half in halves for line in half if line[0] == "gpus") == ["0,1", "2,3"]
    assert {line[2] for half in halves for line in half if line[0] == "gpus"} == {"0,1"}


def test_typo_in_the_account_is_refused_in_words(stack: DevStack) -> None:
    assert "Invalid account or account/partition combination specified" in stack.ssh("sbatch -A reseach --wrap true 2>&1", check=False)
    assert stack.ssh("srun --account=research bash -c 'echo $SLURM_JOB_ACCOUNT'", user="carol") == "research\n"


def test_usage_of_a_job_is_that_of_its_users_account(stack: DevStack) -> None:
    assert "research|alice|" in stack.ssh("sshare --noheader --parsable2 --users=alice --format=account,user,rawusage").replace(" ", "")
    job = stack.submit("#!/bin/bash\nsleep 2\n", "--output=/dev/null")
    stack.wait_for_job(job)
    eventually("in sacct", lambda: stack.ssh(f"sacct -nXP -j {job} -o account,state") == "research|COMPLETED\n", 60)
    report = "sreport --noheader --parsable2 -t seconds job SizesByAccount FlatView start=now-1hours end=now+1hours"
    used = eventually("in sreport", lambda: [line for line in stack.ssh(report).splitlines() if line.startswith("dev|research|")], 60)
    assert int(used[0].split("|")[2]) > 0


def test_mpirun_inside_sbatch_spans_two_nodes(stack: DevStack) -> None:
    job = stack.submit("#!/bin/bash\nmpirun hostname\n", "--nodes=2 --ntasks-per-node=1 --output=mpi.out")
    stack.wait_for_job(job)
    hosts = stack.ssh("cat mpi.out").split()
    assert len(set(hosts) & set(stack.nodes())) == 2


def test_task_over_its_memory_is_killed(stack: DevStack) -> None:
    script = "#!/bin/bash\nexec python3 -c 'held = bytearray(400 << 20)'\n"
    job = stack.submit(script, "--mem=100 --output=memory.out")
    stack.wait_for_job(job, "OUT_OF_MEMORY")


def test_accounting_shows_finished_jobs_with_their_gpus(stack: DevStack) -> None:
    job = stack.submit("#!/bin/bash\ntrue\n", "--gres=gpu:1")
    stack.wait_for_job(job)

    def recorded() -> bool:
        row = stack.ssh(f"sacct -nXP -j {job} -o state,alloctres")
        return row.startswith("COMPLETED") and "gres/gpu=1" in row

    eventually("the job in sacct", recorded, 60)


def test_password_and_root_logins_are_refused(stack: DevStack) -> None:
    address = stack.address
    options = ("-p", NODE_PORT, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
    for who, extra in (("root", ("-i", str(KEY))), ("alice", ("-o", "PubkeyAuthentication=no"))):
        command = ["ssh", *options, *extra, f"{who}@{address}", "true"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120 * patience(), check=False)
        assert done.returncode == 255
        assert "Permission denied" in done.stderr


def test_make_up_ignores_kubeconfig_and_ends_with_a_check_for_users(stack: DevStack, tmp_path: Path) -> None:
    """KUBECONFIG names a cluster that counts its visitors."""
    with socket.create_server(("127.0.0.1", 0)) as visitors:
        cluster = {"name": "theirs", "cluster": {"server": f"http://127.0.0.1:{visitors.getsockname()[1]}"}}
        context = {"name": "slipway-local", "context": {"cluster": "theirs", "user": ""}}
        config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "slipway-local"}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        said = _make("up", tmp_path / "kubeconfig")
        assert 'context "slipway-local", server https://198.18.0.1:6443, namespace slurm' in said
        assert "Nothing to change" in _make("preview", tmp_path / "kubeconfig")
        visitors.setblocking(False)
        with pytest.raises(BlockingIOError):
            visitors.accept()
    titles = r"login|hello on \w+|GPUs on gpu|MPI over two nodes|container|package for jobs|accounting|shared home"
    seen = {title: (mark, words) for mark, title, words in re.findall(rf"^ (\S) ({titles}) +(.*)$", said, re.MULTILINE)}
    assert list(seen) == [
        *("login", "hello on cpu", "hello on gpu", "GPUs on gpu", "hello on burst"),
        *("MPI over two nodes", "container", "package for jobs", "accounting", "shared home"),
    ]
    assert {mark for mark, _ in seen.values()} == {"✓"}, said
    assert "3 visible, 3 open, 1 refused" in seen["GPUs on gpu"][1]
    assert "ranks 2 sum 3" in seen["MPI over two nodes"][1]
    assert re.search(r"run on (cpu|gpu)-\d", seen["package for jobs"][1])
    assert stack.ssh("ls -A ~ | grep slipway-check; squeue --me --noheader; dpkg-query -W slipway-check 2>/dev/null; true") == ""
    assert f"-p {NODE_PORT}" in said
    settings = json.loads(stack.run(sys.executable, "-m", *SETTINGS).stdout)  # of the machine: so apt and pip work in the root
    assert stack.ssh(f"cat /dev/null {' '.join(f'/{path}' for path in settings)}") == "".join(settings.values())


def _make(verb: str, kubeconfig: Path) -> str:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    command = ("make", "--no-print-directory", verb, "STACK=dev")
    limit_s = 600 * patience()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_user_reaches_by_ssh_only_nodes_that_run_their_jobs(stack: DevStack) -> None:
    job = stack.submit("#!/bin/bash\nsleep infinity\n", "--nodelist=gpu-0 --mem=100 --output=/dev/null")
    eventually("a way in, once the job has started", lambda: stack.ssh("ssh gpu-0 hostname").strip() == "gpu-0")
    assert f"/job_{job}/step_extern" in stack.ssh("ssh gpu-0 cat /proc/self/cgroup")
    assert "you have no active jobs on this node" in stack.ssh("ssh gpu-1 hostname 2>&1", check=False)
    stack.ssh(f"scancel {job}")
    stack.wait_for_job(job, "CANCELLED")
