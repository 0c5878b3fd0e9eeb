"""What a researcher does first: log in, sbatch over two nodes, ask for GPUs, run MPI; and what Slurm must guard while they do."""

import re
import subprocess
import sys

from tests.cluster.dev_stack import KEY, NODE_PORT, ROOT, DevStack, eventually

OPEN_EVERY_DEVICE = """#!/bin/bash
for device in /dev/nvidia[0-9]; do
  case $( { : <"$device"; } 2>&1) in *"not permitted"*) echo "refused $device" ;; *) echo "ours $device" ;; esac
done
"""


def test_two_node_job_prints_both_host_names_into_the_shared_home(stack: DevStack) -> None:
    job = stack.submit("#!/bin/bash\nsrun hostname\n", "--partition=main --nodes=2 --ntasks-per-node=1 --output=hosts.out")
    stack.wait_for_job(job)
    hosts = stack.ssh("cat hosts.out").split()
    assert len(set(hosts)) == 2
    assert set(hosts) <= set(stack.nodes())


def test_gpu_job_sees_the_two_devices_it_asked_for_and_is_refused_the_others(stack: DevStack) -> None:
    job = stack.submit(OPEN_EVERY_DEVICE, "--gres=gpu:2 --output=gpus.out")
    stack.wait_for_job(job)
    verdicts = [line.split()[0] for line in stack.ssh("cat gpus.out").splitlines()]
    assert sorted(verdicts) == ["ours", "ours", "refused", "refused"]


def test_four_gpus_are_shared_by_two_jobs_without_overlap(stack: DevStack) -> None:
    script = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES\nsleep 5\n"
    jobs = [stack.submit(script, f"--nodelist=gpu-0 --gres=gpu:2 --mem=200 --oversubscribe --output=half-{half}.out") for half in (1, 2)]
    for job in jobs:
        stack.wait_for_job(job)
    seen = stack.ssh("cat half-1.out half-2.out").replace(",", " ").split()
    assert len(seen) == 4


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
        done = subprocess.run(
            ["ssh", *options, *extra, f"{who}@{address}", "true"], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 255
        assert "Permission denied" in done.stderr


def test_quickstart_ends_with_both_jobs_a_package_from_the_login_session_in_a_third_and_how_to_log_in(stack: DevStack) -> None:
    done = stack.run(sys.executable, "-m", "local", "quickstart", "--stack", "dev", "--key", str(KEY.relative_to(ROOT)), timeout_s=400)
    assert done.stdout.count(" ours") == 2
    assert done.stdout.count("COMPLETED") == 2
    assert re.search(r"installed here, in a job:\s+slipway-hello on (cpu|gpu)-\d\n", done.stdout), done.stdout
    assert f"-p {NODE_PORT}" in done.stdout


def test_user_goes_by_ssh_to_a_node_where_a_job_of_theirs_runs_and_to_no_other(stack: DevStack) -> None:
    job = stack.submit("#!/bin/bash\nsleep 600\n", "--nodelist=gpu-0 --mem=100 --output=/dev/null")
    eventually("a way in, once the job has started", lambda: stack.ssh("ssh gpu-0 hostname").strip() == "gpu-0")
    assert f"/job_{job}/step_extern" in stack.ssh("ssh gpu-0 cat /proc/self/cgroup")
    assert "you have no active jobs on this node" in stack.ssh("ssh gpu-1 hostname 2>&1", check=False)
    stack.ssh(f"scancel {job}")
    stack.wait_for_job(job, "CANCELLED")
