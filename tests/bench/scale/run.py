"""The measurements. `python -m tests.bench.scale.run MODE NUMBER IMAGE FOLDER` prints one as JSON; `measure` runs it in its own namespaces.

`bare`: slurmds started at once by a loop, until slurmctld has heard them all: what Slurm and this machine take by themselves.
`whole`: the same nodes by a NodeSet scaled from 0, through API server, scheduler and controller; then idle; then back to 0.
`zero`: jobs one after another, each on an elastic node that is powered down.
`prolog`: what PrologSlurmctld takes for jobs that it does not concern.
`faults`: checks that fail on nodes of a set, until the nodes are drained.
`files`: a changed line of slurm.conf, from the moment that it is in slurmctld's pod until every slurmd has it.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from lightkube.config.kubeconfig import KubeConfig

from components.kinds import build_crds
from components.node_set import build_node_set
from components.pods import pod_defaults
from configs.load import load_cluster
from configs.models.cluster import Cluster
from controllers.runtime.api import connect
from names import ports
from tests.bench.scale import faults as failing
from tests.bench.scale.machines import PODS_PER_MACHINE, Machines
from tests.bench.scale.slurm import ADDRESS, Slurm
from tests.support.apiserver.server import ApiServer, run_process, serve
from tests.support.slurm.image_pods import wait_for

ROOT = Path(__file__).parents[3]
POOL = {"slipway.dev/pool": "workers"}
USER = 10001
STEP_NODES = 100
"""Nodes of the one step that shows that they are real; more slurmstepds than that at once starve everything on a small machine."""
REST_S = 30.0
"""For what an idle controller takes; a smaller set than the step's is a try of the harness, and waits for nothing."""
_RESTARTING = "while true; do {} -m controllers.nodeset; sleep 1; done"
"""As a Deployment would: the controller ends when it loses its lease."""
LOGS = Path("/var/tmp/slipway-scale.logs")
"""Of a run that failed."""
_NAMESPACE = ("unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
_DEADLINE_S = 300.0
_TICK = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]


def measure(mode: str, number: int, image: Path) -> Figures:
    """One run on the files of the image. Raises RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="slipway-scale-", dir="/var/tmp") as folder:
        work = Path(folder)
        work.chmod(0o755)  # user slurm works below
        command = [*_NAMESPACE, sys.executable, "-m", "tests.bench.scale.run", mode, str(number), str(image), folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(LOGS, ignore_errors=True)
            LOGS.mkdir()
            for log in work.glob("*.log"):
                shutil.copy(log, LOGS)
            raise RuntimeError(f"{mode} with {number} nodes gave {done.returncode}. Logs: {LOGS}\n{done.stderr[-3000:]}")
        return json.loads(done.stdout)


def describe(number: int, elastic: bool, checks: Sequence[Mapping[str, Any]] = ()) -> Cluster:
    """A stack of one set."""
    size: dict[str, int] = {"min": 0, "max": number} if elastic else {"size": number}
    stack: dict[str, Any] = {
        "name": "bench",
        "kubernetes": {},
        "nodePools": [
            {
                "name": "workers",
                "hardware": {"coresPerSocket": 64, "memoryMiB": 500_000},
                "max": -(-number // PODS_PER_MACHINE),
                "existing": {"count": -(-number // PODS_PER_MACHINE), "labels": POOL},
            }
        ],
        "nodeSets": [{"name": "node", "pool": "workers", "cpus": 1, "memoryMiB": 1024, **size}],
        "partitions": [{"name": "main", "nodeSets": ["node"], "default": True}],
        "storage": {"sharedRoot": {"hostPath": "/srv/shared"}, "home": {"hostPath": "/srv/home"}},
        "login": {"users": [{"name": "alice", "uid": USER, "sshKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43]}]},
        "accounting": {"enabled": False},
        "healthChecks": [*checks],
        "slurm": {"suspendTimeS": 3000, "suspendTimeoutS": 60},
    }
    return load_cluster(stack, Path(), "Pulumi.bench.yaml")


def bare(slurm: Slurm, number: int) -> Figures:
    """Seconds from the first start to the last registration, and what one slurmd took."""
    begin = time.time()
    for at in range(number):
        slurm.start_worker(f"node-{at}")
    wait_for("every slurmd registered", lambda: len(slurm.registered()) == number, _DEADLINE_S, 0.5)
    own = [slurm.registered()[node] - slurm.started[node] for node in slurm.started]
    return {"total_s": max(slurm.registered().values()) - begin, "slurmd_median_s": median(own), "slurmd_worst_s": max(own)}


def files(slurm: Slurm, number: int) -> Figures:
    """Seconds of each step, and CPU seconds of all slurmds: on a small machine they take most of the time. The median of three changes."""
    bare(slurm, number)
    slurm.start_sidecar()
    wait_for("the first files", lambda: ask_sidecar()["state"] == "live", _DEADLINE_S, 0.1)
    rounds = [_change(slurm, limit) for limit in (61, 62, 63)]
    return {name: median(each[name] for each in rounds) for name in rounds[0]}


def _change(slurm: Slurm, limit: int) -> Figures:
    before, used = ask_sidecar()["files"], _cpu_of(slurm)
    begin = time.time()
    slurm.offer(f"KillWait={limit}\n")
    wait_for("slurmctld", lambda: ask_sidecar()["files"] != before and ask_sidecar()["state"] != "waiting", _DEADLINE_S, 0.02)
    taken = time.time()
    wait_for("every slurmd", lambda: ask_sidecar()["state"] == "live", _DEADLINE_S, 0.02)
    live = time.time()
    assert f"all {len(slurm.workers)} slurmds" in ask_sidecar()["message"]
    return {"slurmctld_s": taken - begin, "slurmds_s": live - taken, "total_s": live - begin, "slurmds_cpu_s": _cpu_of(slurm) - used}


def ask_sidecar() -> dict[str, str]:
    """How far the files are, in the sidecar's words."""
    with urlopen(f"http://{ADDRESS}:{ports.CONFIG_SYNC}/files", timeout=10) as answer:
        return json.load(answer)


def _cpu_of(slurm: Slurm) -> float:
    return sum(cpu_s(worker.pid) for worker in slurm.workers.values())


async def whole(slurm: Slurm, number: int) -> Figures:
    """The way of a set from 0 to `number` idle nodes, with each part's share; a minute of rest; and back to 0."""
    async with lab(slurm, number) as (server, machines, pids):
        before = {name: cpu_s(pid) for name, pid in pids.items()}
        begin = time.time()
        scale(server, number)
        await until_async(lambda: len(slurm.registered()) >= number, "every node registered", 0.5)
        idle_at = max(slurm.registered().values())
        await until_async(lambda: status(server).get("idle") == number, "its status says so", 0.2)
        told_at = time.time()
        used = {f"{name}_cpu_s": cpu_s(pid) - before[name] for name, pid in pids.items()}
        times, registered = machines.times, slurm.registered()
        controller = _pids()["controller"]
        rest = cpu_s(controller), time.time()
        await asyncio.sleep(REST_S if number >= STEP_NODES else 0.1)
        idle_share = (cpu_s(controller) - rest[0]) / (time.time() - rest[1])
        spread = min(number, STEP_NODES)
        hosts = slurm.call("setpriv", f"--reuid={USER}", "--clear-groups", "srun", f"-N{spread}", "--chdir=/tmp", "hostname").split()
        assert len(hosts) == spread, f"srun reached {len(hosts)} nodes of {spread}"
        down = time.time()
        scale(server, 0)
        await until_async(lambda: not slurm.workers, "no pod left", 0.5)
        return {
            "total_s": idle_at - begin,
            "pods_made_s": max(times.created.values()) - begin,
            "pod_made_to_bound_median_s": median(gaps(times.created, times.bound)),
            "bound_to_slurmd_median_s": median(gaps(times.bound, slurm.started)),
            "slurmd_median_s": median(gaps(slurm.started, registered)),
            "slurmd_worst_s": max(gaps(slurm.started, registered)),
            "status_after_s": told_at - idle_at,
            **used,
            "idle_controller_percent": 100 * idle_share,
            "to_zero_s": time.time() - down,
        }


async def faults(slurm: Slurm, number: int) -> Figures:
    """From a failed check to a drained node, in a set that is idle before."""
    async with lab(slurm, number) as (server, _machines, _pids):
        scale(server, number)
        await until_async(lambda: status(server).get("idle") == number, "every node idle", 0.5)
        return await failing.measure(slurm, number)


async def zero(slurm: Slurm, number: int) -> Figures:
    """Jobs on nodes that are powered down, one after another: the medians of the parts of their way."""
    prepare_user(slurm)
    async with lab(slurm, number) as (_server, machines, _pids):
        begun: dict[str, float] = {}
        ran: dict[str, float] = {}
        for at in range(number):
            node = f"node-{at}"
            begun[node] = time.time()
            script = "#!/bin/sh\ndate +%s.%N\n"
            options = (f"--nodelist={node}", f"--output=/home/alice/{node}", "--chdir=/tmp")
            slurm.call("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "sbatch", *options, stdin=script)
            output = slurm.root / "home/alice" / node
            await until_async(lambda output=output: output.exists() and output.read_text().endswith("\n"), f"the job on {node}", 0.05)
            ran[node] = float(output.read_text())
        times, registered = machines.times, slurm.registered()
        own = gaps(slurm.started, registered)
        return {
            "submit_to_running_median_s": median(gaps(begun, ran)),
            "submit_to_allocated_median_s": median(gaps(begun, slurm.allocated())),
            "allocated_to_pod_median_s": median(gaps(slurm.allocated(), times.created)),
            "pod_to_slurmd_median_s": median(gaps(times.created, slurm.started)),
            "slurmd_median_s": median(own),
            "registered_to_running_median_s": median(gaps(registered, ran)),
            "ratio_median": median(job / slurmd for job, slurmd in zip(gaps(slurm.started, ran), own, strict=True)),
            "ratio_worst": max(job / slurmd for job, slurmd in zip(gaps(slurm.started, ran), own, strict=True)),
        }


def prolog(slurm: Slurm, number: int) -> Figures:
    """What PrologSlurmctld takes for a job on a fixed set, beside an empty script; medians, in milliseconds."""
    (slurm.root / "empty.sh").write_text("#!/bin/bash\nexit 0\n")
    (slurm.root / "empty.sh").chmod(0o755)
    took: dict[str, list[float]] = {"/opt/slipway/scripts/prolog-slurmctld.sh": [], "/empty.sh": []}
    (slurm.root / "etc/slurm/elastic").write_text("".join(f"burst{at}\n" for at in range(20)))
    for _ in range(number):
        for script, times in took.items():
            begin = time.perf_counter()
            slurm.call(script, env={"SLURM_JOB_NODELIST": "node-[0-99]", "SLURM_JOB_ID": "1"})
            times.append(time.perf_counter() - begin)
    with_prolog, without = (1000 * median(times) for times in took.values())
    return {"prolog_ms": with_prolog, "empty_ms": without, "cost_ms": with_prolog - without}


@asynccontextmanager
async def lab(slurm: Slurm, number: int) -> AsyncGenerator[tuple[ApiServer, Machines, Mapping[str, int]]]:
    """API server, scheduler, simulated machines and the controller, with the set ready; and the process ids."""
    work = slurm.folder
    with serve(work) as server:
        # Everything on this machine, so the limits that protect a real API server from its clients only slow it.
        fast = ["--kube-api-qps=5000", "--kube-api-burst=10000", "--leader-elect=false", "--authentication-skip-lookup"]
        files = ["--kubeconfig", str(server.kubeconfig()), "--cert-dir", str(work / "scheduler")]
        with run_process("kube-scheduler", [str(server.programs["kube-scheduler"]), *files, *fast], work):
            for kind in build_crds("bench"):
                server.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(kind))
                server.run_kubectl("wait", "--for=condition=Established", "--timeout=120s", f"crd/{kind['metadata']['name']}")
            server.make_namespace("slurm")
            config = KubeConfig.from_file(str(server.kubeconfig())).get()
            api = connect(config)
            machines = Machines(api, slurm, POOL)
            await machines.register(-(-number // PODS_PER_MACHINE))
            following = asyncio.create_task(machines.run())
            with run_process("controller", ["bash", "-c", _RESTARTING.format(sys.executable)], work, _controller_env(server, slurm)):
                server.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(_node_set(slurm.cluster)))
                await until_async(lambda: _is_seen(server), "the controller has seen the set", 0.2)
                try:
                    yield server, machines, _pids()
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
                    await api.close()


def _node_set(cluster: Cluster) -> Mapping[str, Any]:
    programs = {name: name for name in ("names", "slurm", "munged", "worker", "node_checks")}
    manifest = build_node_set(cluster, pod_defaults(cluster, "slurm", "scripts", programs), cluster.node_sets[0])
    if "replicas" in manifest["spec"]:
        manifest["spec"]["replicas"] = 0
    return manifest


def _controller_env(server: ApiServer, slurm: Slurm) -> dict[str, str]:
    return {
        **os.environ,
        "KUBECONFIG": str(server.kubeconfig()),
        "SLIPWAY_CLUSTER": "bench",
        "SLIPWAY_NAMESPACE": "slurm",
        "SLIPWAY_SLURMRESTD": slurm.url,
        "SLIPWAY_JWT_KEY": str(slurm.jwt_key),
        "SLIPWAY_PROBE_PORT": "18082",  # the collector of checks has the usual one, and all are one pod here
        "POD_NAME": "bench-controller",
    }


def _pids() -> dict[str, int]:
    """Process ids of who works, by a part of their command line; this process id namespace has nobody else."""
    wanted = {"etcd": "etcd", "apiserver": "kube-apiserver", "scheduler": "kube-scheduler", "slurmctld": "slurmctld"}
    found = {"harness": os.getpid()}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            continue
        for name, program in wanted.items():
            if Path(words[0]).name == program:
                found[name] = int(entry.name)
        if words[1:3] == ["-m", "controllers.nodeset"]:
            found["controller"] = int(entry.name)
    return found


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used so far."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / _TICK


def gaps(before: Mapping[str, float], after: Mapping[str, float]) -> list[float]:
    """Seconds from one event to the other, for each that has both."""
    return [after[name] - before[name] for name in before if name in after]


def scale(server: ApiServer, number: int) -> None:
    """As `kubectl scale` does it."""
    with server.client() as client:
        path = "/apis/slipway.dev/v1alpha1/namespaces/slurm/nodesets/node/scale"
        answer = client.patch(path, json={"spec": {"replicas": number}}, headers={"Content-Type": "application/merge-patch+json"})
        assert answer.status_code == 200, answer.text


def status(server: ApiServer) -> dict[str, Any]:
    """The set's status."""
    with server.client() as client:
        return client.get("/apis/slipway.dev/v1alpha1/namespaces/slurm/nodesets/node").json().get("status", {})


def _is_seen(server: ApiServer) -> bool:
    return any(one["type"] == "SlurmAnswers" and one["status"] == "True" for one in status(server).get("conditions", []))


async def until_async(holds: Callable[[], bool], what: str, every_s: float) -> None:
    """Waits while the simulated machines work, or fails with what did not come."""
    end = time.monotonic() + _DEADLINE_S
    while not holds():
        assert time.monotonic() < end, f"never came: {what}"
        await asyncio.sleep(every_s)


def prepare_user(slurm: Slurm) -> None:
    """alice, with a home."""
    users = slurm.root / "var/lib/extrausers"
    users.mkdir(parents=True, exist_ok=True)
    (users / "passwd").write_text(f"alice:x:{USER}:{USER}::/home/alice:/bin/bash\n")
    (users / "group").write_text(f"alice:x:{USER}:\n")
    (users / "shadow").write_text("alice:*:19700:0:99999:7:::\n")
    home = slurm.root / "home/alice"
    home.mkdir(parents=True, exist_ok=True)
    os.chown(home, USER, USER)


_PLAIN: dict[str, Callable[[Slurm, int], Figures]] = {"bare": bare, "prolog": prolog, "files": files}
"""Modes without Kubernetes."""
_WITH_KUBERNETES: dict[str, Callable[[Slurm, int], Coroutine[Any, Any, Figures]]] = {"whole": whole, "zero": zero, "faults": faults}


def main(mode: str, number: int, image: Path, folder: Path) -> None:
    """In namespaces of its own."""
    for words in (["lo", "up"], ["add", "lab0", "type", "veth", "peer", "name", "lab1"], ["lab0", "up"], ["lab1", "up"]):
        subprocess.run(["ip", "link", *(words if words[0] == "add" else ["set", *words])], check=True)
    subprocess.run(["ip", "address", "add", f"{ADDRESS}/24", "dev", "lab0"], check=True)
    subprocess.run(["ip", "route", "add", "default", "dev", "lab0"], check=True)  # kubeadm and kube-apiserver look for an address there
    subprocess.run(["hostname", "bench-slurmctld-0"], check=True)
    slurm = Slurm(describe(number, mode == "zero", [failing.CHECK] if mode == "faults" else ()), image, folder, configless=mode == "files")
    slurm.start()
    prepare_user(slurm)
    figures = _PLAIN[mode](slurm, number) if mode in _PLAIN else asyncio.run(_WITH_KUBERNETES[mode](slurm, number))
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the namespace ends with this process, and all programs with it


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
