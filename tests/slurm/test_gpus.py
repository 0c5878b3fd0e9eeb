"""Workers whose GPUs are not those of the config, against a real slurmctld: simulated GPUs that vanish and come back, and their parts.

A simulated GPU is a device file of the worker's pod, so a test takes it away as a machine would.
"""

import contextlib
import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm.elastic_cluster import ElasticCluster
from tests.support.slurm.image_pods import Container, Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, STACK

FOLDER = Path("/var/tmp/slipway-gpus-pods")
FIXED, ELASTIC = ("fix-0", "fix-1"), ("el-0", "el-1")
FAULT = "slipway: gpus: 3 GPUs, and the config says 4"
TOLD_BY_DRIVER = "the driver does not tell which GPUs there are: nvidia-smi ended with 15: Unable to determine the device handle for GPU 0"
DECLARED = {"vendor": "nvidia", "model": "h100", "count": 4, "memoryMiB": 81559}
MIG = [{"profile": "3g.40gb", "count": 1}, {"profile": "1g.10gb", "count": 2}]
"""What each of the four GPUs of `mig-0` is divided into."""
OPEN = """#!/bin/bash
for file in /dev/nvidia? /dev/slipway-mig/*; do
  case $( { : <$file; } 2>&1) in *"not permitted"*) ;; *) found="$found ${file#/dev/}" ;; esac
done
echo "$CUDA_VISIBLE_DEVICES$found"
"""
"""What CUDA is told, and the devices that a task may open. The kernel has nothing behind simulated ones."""


class GpuCluster(ElasticCluster):
    """A fixed and an elastic set of nodes with four GPUs each."""

    def worker(self, node: str, gpus: int = 4) -> Container:
        """Makes the pod of a node anew, on a machine with that many simulated GPUs; 0 stands for a machine with a driver."""
        self.remove(node)
        declared = DECLARED | ({"mig": MIG} if node == "mig-0" else {})
        more = {"SLIPWAY_SIMULATED_GPUS": str(gpus), "SLIPWAY_DECLARED_GPUS": json.dumps(declared)}
        return self.slurmd(node, more={**more, **({"SLIPWAY_ELASTIC": "1"} if node in ELASTIC else {})})

    def inside(self, node: str, script: str) -> str:
        """Runs a script in a worker."""
        return self.containers[f"{node}/slurmd"].run("bash", "-c", script, check=False)

    def output(self, script: str, *options: str) -> list[str]:
        """The lines that a batch job on `mig-0` prints."""
        place = "/home/alice/gpus.out"
        self.inside("mig-0", f"rm -f {place}; install -d -o {ALICE} /home/alice")
        command = ("sbatch", "--wait", "--partition=parts", "--mem=50", "--chdir=/tmp", f"--output={place}", *options, f"--wrap={script}")
        with contextlib.suppress(PodError):  # the lines say why
            self.slurm(*command, user=ALICE)
        return self.inside("mig-0", f"cat {place}").splitlines()

    def reason(self, node: str) -> str:
        """Why a node is drained or down, without Slurm's note of who and when."""
        found = re.search(r" Reason=(.*?) \[", self.node(node))
        return found[1] if found else ""


def files(cluster: GpuCluster) -> dict[str, str]:
    """Slurm's files as slurmctld has been given them."""
    return {file.name: file.read_text() for file in (cluster.machine.folder / "volume-slurm" / "..data").iterdir()}


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[GpuCluster]:
    """slurmctld and both fixed workers; the tests start the elastic ones."""
    machine = Machine(FOLDER, image_root, "swgp-")
    machine.close()
    FOLDER.mkdir(mode=0o755)
    stack = copy.deepcopy(STACK)
    stack["accounting"] = {"enabled": False}
    gpus = {"model": "h100", "count": 4}
    part = {"pool": "workers", "memoryMiB": 1024, "gpus": gpus, "simulatedGpus": True}
    stack["nodePools"][0] |= {"max": 5}
    stack["nodePools"][0]["hardware"] |= {"memoryMiB": 64_000, "sockets": 2, "coresPerSocket": 1}
    parts = {"name": "mig", "size": 1, **part, "gpus": {**gpus, "mig": MIG}}
    stack["nodeSets"] = [{"name": "fix", "size": 2, **part}, {"name": "el", "min": 0, "max": 2, **part}, parts]
    stack["slurm"] |= {"settings": {"SlurmdParameters": "config_overrides"}}  # two sockets, whatever this machine has
    stack["partitions"] = [
        {"name": name, "nodeSets": [of], "default": name == "main"} for name, of in {"main": "fix", "burst": "el", "parts": "mig"}.items()
    ]
    made = GpuCluster(machine, stack=stack, names={"t-slurmctld-0": ["t-slurmctld"], **{node: [] for node in (*FIXED, *ELASTIC, "mig-0")}})
    try:
        made.prepare()
        for pod in ("t-slurmctld-0", *FIXED, "mig-0"):
            made.munged(pod)
        made.slurmctld()
        made.reconfigure()
        made.taken()
        made.up(*FIXED, "mig-0")
        yield made
    finally:
        machine.keep_logs()
        machine.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


def test_node_whose_gpu_vanishes_takes_no_job_and_comes_back_by_itself(cluster: GpuCluster) -> None:
    """Other nodes and their jobs do not notice. The job that waits for the node starts once the GPU is back."""
    other = cluster.running("--nodelist=fix-1", "--gpus=1", "--mem=50")
    cluster.inside("fix-0", "rm /dev/nvidia3; pkill --exact slurmd")
    waiting = ""
    try:
        wait_for("the drain", lambda: cluster.reason("fix-0") == FAULT, deadline_s=60)
        waiting = cluster.submit("--nodelist=fix-0", "--gpus=4", "--mem=50")
        log = cluster.containers["fix-0/slurmd"]
        wait_for("words", lambda: "slurmd waits until the GPUs are those of the config: 3 GPUs, and the config says 4" in log.log)
        wait_for("a node without slurmd", lambda: cluster.inside("fix-0", "pgrep --exact 'slurmd|slurmd-wlm'") == "")
        assert "DRAIN" in cluster.state("fix-0")
        assert (cluster.job(waiting), cluster.job(other)) == ("PENDING", "RUNNING")
        cluster.inside("fix-0", "mknod --mode=666 /dev/nvidia3 c 195 3")
        wait_for("the waiting job", lambda: cluster.job(waiting) == "RUNNING", deadline_s=90)
        assert "DRAIN" not in cluster.state("fix-0")
        assert (cluster.job(other), cluster.job(other, "Restarts")) == ("RUNNING", "0")
    finally:
        cluster.inside("fix-0", "mknod --mode=666 /dev/nvidia3 c 195 3")
        cluster.slurm("scancel", other, *([waiting] if waiting else []))
    wait_for("idle nodes", lambda: all(cluster.state(node) == "IDLE+CLOUD" for node in FIXED), deadline_s=60)


def test_node_that_starts_with_too_few_gpus_registers_once_they_are_there(cluster: GpuCluster) -> None:
    cluster.worker("fix-0", gpus=3)
    try:
        wait_for("the drain", lambda: cluster.reason("fix-0") == FAULT, deadline_s=60)
        assert cluster.inside("fix-0", "pgrep --exact 'slurmd|slurmd-wlm'") == ""
        cluster.inside("fix-0", "mknod --mode=666 /dev/nvidia3 c 195 3")
        wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=90)
    finally:
        cluster.up("fix-0")


def test_person_keeps_a_node_whose_gpus_came_back(cluster: GpuCluster) -> None:
    """A drain of somebody else's is neither overwritten nor lifted."""
    cluster.slurm("scontrol", "update", "NodeName=fix-0", "State=DRAIN", "Reason=fan is loud")
    cluster.worker("fix-0", gpus=3)
    try:
        log = cluster.containers["fix-0/slurmd"]
        wait_for("words", lambda: "slurmd waits until the GPUs are those" in log.log, deadline_s=60)
        assert cluster.reason("fix-0") == "fan is loud"
        cluster.inside("fix-0", "mknod --mode=666 /dev/nvidia3 c 195 3")
        wait_for("slurmd", lambda: "slurmd started" in log.log, deadline_s=90)
        wait_for("its node", lambda: cluster.state("fix-0") == "IDLE+CLOUD+DRAIN", deadline_s=90)
        assert cluster.reason("fix-0") == "fan is loud"
    finally:
        cluster.slurm("scontrol", "update", "NodeName=fix-0", "State=UNDRAIN")
        cluster.up("fix-0")


def test_job_that_woke_a_node_with_too_few_gpus_runs_on_another(cluster: GpuCluster) -> None:
    """It does not wait for ResumeTimeout, which is two minutes here, and ten by default."""
    job = cluster.submit("--partition=burst", "--nodelist=el-0", "--gpus=4", "--mem=50")
    try:
        wait_for("a node that wakes", lambda: "POWERING_UP" in cluster.state("el-0"), deadline_s=60)
        cluster.worker("el-0", gpus=3)
        wait_for("the drain", lambda: FAULT in cluster.reason("el-0"), deadline_s=60)
        wait_for("a job that waits again", lambda: cluster.job(job) == "PENDING", deadline_s=60)
        cluster.slurm("scontrol", "update", f"JobId={job}", "ReqNodeList=el-1", "StartTime=now")
        wait_for("another node that wakes", lambda: "POWERING_UP" in cluster.state("el-1"), deadline_s=60)
        cluster.worker("el-1")
        wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=90)
    finally:
        cluster.slurm("scancel", job)


def test_job_gets_the_cores_beside_its_gpus(cluster: GpuCluster) -> None:
    """A job without GPUs on the core beside the first two leaves these to nobody who insists on near cores."""
    options = ("--nodelist=fix-1", "--ntasks=1", "--mem=50", "--gres=gpu:2", "--gres-flags=enforce-binding")
    jobs = [cluster.running(*options), cluster.running(*options)]
    third = cluster.submit("--nodelist=fix-1", "--ntasks=1", "--mem=50", "--gres=gpu:1")
    try:
        details = [cluster.slurm("scontrol", "--details", "--oneliner", "show", "job", job) for job in jobs]
        near = {tuple(re.findall(r" CPU_IDs=(\S+) .*?\(IDX:(\S+?)\)", each)[0]) for each in details}
        assert near == {("0", "0-1"), ("1", "2-3")}
        assert cluster.job(third) == "PENDING"
    finally:
        cluster.slurm("scancel", *jobs, third)


def test_cores_that_change_beside_gpus_leave_running_jobs_alone(cluster: GpuCluster) -> None:
    """As an upgrade does, from a release whose gres.conf has no cores."""
    job = cluster.running("--nodelist=fix-1", "--ntasks=1", "--mem=50", "--gres=gpu:2")
    other = copy.deepcopy(cluster.stack)
    try:
        for sockets, cores in (([1, 1, 0, 0], True), ([], False), ([], True)):
            other["nodeSets"][0]["gpus"] = {**other["nodeSets"][0]["gpus"], "sockets": sockets}
            cluster.configure(other)
            if not cores:
                gres = (cluster.machine.folder / "volume-slurm" / "gres.conf").read_text()
                cluster.volume("slurm", {**files(cluster), "gres.conf": re.sub(" Cores=.*", "", gres)})
            cluster.taken()
            wait_for("slurmds with the files", lambda: all(cluster.state(node) in ("IDLE+CLOUD", "MIXED+CLOUD") for node in FIXED))
            assert (cluster.job(job), cluster.job(job, "Restarts")) == ("RUNNING", "0")
            next_job = cluster.running("--nodelist=fix-1", "--ntasks=1", "--mem=50", "--gres=gpu:2")
            cluster.slurm("scancel", next_job)
    finally:
        cluster.slurm("scancel", job)
    wait_for("idle nodes", lambda: all(cluster.state(node) == "IDLE+CLOUD" for node in FIXED), deadline_s=60)


def test_instances_of_mig_are_open_to_the_tasks_that_got_them_alone(cluster: GpuCluster) -> None:
    """Each task has one GPU's device file and the two of its instance, and CUDA is told the instance's own name."""
    cluster.inside("mig-0", f"mkdir -p /home/alice; cat >/home/alice/open <<'END'\n{OPEN}END\nchmod 755 /home/alice/open")
    said = cluster.output("srun --quiet /home/alice/open", "--ntasks=2", "--gpus-per-task=h100_1g.10gb:1")
    assert len(set(said)) == len(said) == 2
    for name, *files in map(str.split, said):
        found = re.fullmatch(r"MIG-simulated-(\d)-([12])", name)
        assert found
        assert files == [f"nvidia{found[1]}", f"slipway-mig/{found[1]}-{found[2]}-ci", f"slipway-mig/{found[1]}-{found[2]}-gi"]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        pytest.param("--gpus-per-task=1", "1", id="of-any-type"),
        pytest.param("--gpus-per-task=h100_1g.10gb:1", "h100_1g.10gb:1", id="of-a-type"),
        pytest.param("--gpus=h100_1g.10gb:2", "none", id="none-per-task"),
    ],
)
def test_batch_job_is_told_its_gpus_per_task(cluster: GpuCluster, option: str, told: str) -> None:
    """By the variable that launch scripts of Ray read, which Slurm 26.05 does not set; srun in the job reads it too."""
    script = "echo ${SLURM_GPUS_PER_TASK-none}; srun --quiet echo started"
    assert cluster.output(script, "--ntasks=2", option) == [told, "started", "started"]


def test_job_with_several_instances_of_mig_is_told_all_of_them(cluster: GpuCluster) -> None:
    said = cluster.output("echo $CUDA_VISIBLE_DEVICES", "--gpus=h100_3g.40gb:4")
    assert said == ["MIG-simulated-0-0,MIG-simulated-1-0,MIG-simulated-2-0,MIG-simulated-3-0"]


def test_node_whose_instances_of_mig_are_others_takes_no_job(cluster: GpuCluster) -> None:
    """A stand-in for nvidia-smi: one GPU divided otherwise, then all of them as declared. The kernel's table of devices is not there."""
    cluster.worker("mig-0", gpus=0)
    listed = {"3g.40gb": 1, "1g.10gb": 2}

    def driver(wrong: dict[str, int]) -> None:
        rows = "".join("NVIDIA H100 80GB HBM3, 81559, Enabled\n" for _ in range(4))
        listing, details = _nvidia_smi([wrong, listed, listed, listed])
        script = f"case $* in\n-L) cat <<'E'\n{listing}E\n;;\n*-x*) cat <<'E'\n{details}E\n;;\n*) cat <<'E'\n{rows}E\nesac\n"
        cluster.inside("mig-0", f"cat >/usr/bin/smi.new <<'END'\n#!/bin/bash\n{script}END\nchmod 755 /usr/bin/smi.new")
        cluster.inside("mig-0", "mv /usr/bin/smi.new /usr/bin/nvidia-smi")

    try:
        fault = "the driver does not tell which GPUs there are: there is no nvidia-smi, which alone knows the instances of MIG"
        wait_for("words", lambda: cluster.reason("mig-0") == f"slipway: gpus: {fault}", deadline_s=60)
        cluster.inside("mig-0", "for n in 0 1 2 3; do mknod --mode=666 /dev/nvidia$n c 195 $n; done")
        driver({"3g.40gb": 2})
        fault = "GPU 0 is divided into 2 of 3g.40gb, and the config says 1 of 3g.40gb and 2 of 1g.10gb"
        wait_for("the difference", lambda: cluster.reason("mig-0") == f"slipway: gpus: {fault}", deadline_s=60)
        driver(listed)
        fault = "the instances of MIG cannot be handed out: the kernel knows no nvidia-caps: the driver has no MIG"
        wait_for("the next word", lambda: cluster.reason("mig-0") == f"slipway: gpus: {fault}", deadline_s=60)
    finally:
        cluster.worker("mig-0")
        cluster.up("mig-0")


def _nvidia_smi(gpus: list[dict[str, int]]) -> tuple[str, str]:
    """What `nvidia-smi -L` and `-q -x` say of GPUs that are divided so."""
    listing, details = "", ""
    for at, profiles in enumerate(gpus):
        listing += f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: GPU-{at})\n"
        details += f"<gpu><minor_number>{at}</minor_number><mig_devices>"
        for index, profile in enumerate(name for name, count in profiles.items() for _ in range(count)):
            listing += f"  MIG {profile}     Device  {index}: (UUID: MIG-{at}-{index})\n"
            ids = f"<gpu_instance_id>{index + 1}</gpu_instance_id><compute_instance_id>0</compute_instance_id>"
            details += f"<mig_device><index>{index}</index>{ids}</mig_device>"
        details += "</mig_devices></gpu>\n"
    return listing, f"<?xml version='1.0'?>\n<nvidia_smi_log>{details}</nvidia_smi_log>\n"


def test_words_of_the_driver_decide_where_there_is_one(cluster: GpuCluster) -> None:
    """A stand-in for nvidia-smi: one that fails, one of another model, and one of the right model."""
    cluster.worker("fix-0", gpus=0)
    new, smi = "/usr/bin/nvidia-smi.new", "/usr/bin/nvidia-smi"
    row = "'%s, 81559, Disabled\\n'"

    def driver(script: str, fault: str) -> None:
        cluster.inside("fix-0", f"cat > {new} <<'END'\n#!/bin/bash\n{script}\nEND\nchmod 755 {new}; mv {new} {smi}")
        wait_for(fault or "slurmd", lambda: cluster.reason("fix-0") == (fault and f"slipway: gpus: {fault}"), deadline_s=60)

    try:
        wait_for("no GPU", lambda: cluster.reason("fix-0") == "slipway: gpus: no GPU, and the config says 4", deadline_s=60)
        cluster.inside("fix-0", "for n in 0 1 2 3; do mknod --mode=666 /dev/nvidia$n c 195 $n; done")
        driver("echo 'Unable to determine the device handle for GPU 0'; exit 15", TOLD_BY_DRIVER)
        driver(
            f"for n in 1 2 3 4; do printf {row} 'NVIDIA A100-SXM4-80GB'; done",
            'each GPU is "NVIDIA A100-SXM4-80GB", and the config says h100',
        )
        driver(f"for n in 1 2 3 4; do printf {row} 'NVIDIA H100 80GB HBM3'; done", "")
        wait_for("an idle node", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=60)
    finally:
        cluster.worker("fix-0")
        cluster.up("fix-0")
