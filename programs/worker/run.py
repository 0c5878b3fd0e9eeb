"""slurmd for the node that carries the pod's name, started again whenever it ends: the steps of running jobs are processes of their own.

`python3 -m programs.worker.run`, as root in a privileged container and as the only child of the pod's init. Prepares the container for
jobs; keeps munged running, which slurmd and jobs need, and sshd where users may log in. Settles first what an earlier pod of the node left
behind in Slurm, and watches the registration while slurmd runs. Decides nothing: see plan.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

from names import paths, ports, variables
from programs.munged.daemon import LATEST_S, Munged
from slurm import logs, reasons
from slurm.instances import instance
from slurm.pump import Pump, take_stderr
from slurm.scontrol import Node
from slurm.signals import Signals
from slurm.states import waits_for_power

from . import launches
from .gpus import Gpu, GpuError, compare, compare_sockets, describe, read_sockets
from .gpus import read as read_gpus
from .mig import MigError, make_devices
from .plan import Drain, Lift, Restart, SetDown, needs_boot, plan_gpus, plan_instance, plan_remark, plan_settle, plan_watch
from .port import hold
from .prepare import PrepareError, prepare
from .settings import DeclaredGpus, from_json
from .slurm import Reading, SlurmError, read, write
from .steps import has_steps
from .stopping import is_stopping

_DIAL_S = 3
_MUNGE_S = 10
_AGAIN_S = 3
_MOST_TRIES = 20
_GPUS_S = 5
"""Between two looks at GPUs that are not those of the config."""
_STOP_S = 5
"""Seconds that slurmd has to end; it takes a tenth of one. 26.05.5 hangs once in a hundred times if it gets the signal right
after its start, and a second signal does not help. Once the stop hook is through, the pod has 30 s."""
_BCAST = f"{paths.PLUGINS}/slurmd_bcast.so"
"""Puts files of sbcast into their job's root; see images/slurm/root/bcast.c."""
_REMOVER = f"{paths.PLUGINS}/remover"
"""Removes later what prologs and epilogs took away; see images/slurm/root/remover.c. Older images have none, and remove at once."""
_GPU_METRICS = ("python3", "-EsSB", "-m", "programs.worker.gpu_metrics")
_SSHD = ("bash", f"{paths.PACKAGES}/programs/worker/sshd.sh")
_SSHD_KEYS = paths.NODE_HOST_KEYS
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""The same in every container of the machine; Kubernetes has it as bootID of the node."""

say = logs.teller("worker")


class Worker:
    """One node's slurmd. The main thread alone starts, signals and reaps it, and hears signals; a second one watches the registration.

    The main thread waits until a signal comes, also that of a child's end, or a wish of the other thread.
    """

    def __init__(
        self,
        name: str,
        controller: str,
        is_elastic: bool,
        gpus: DeclaredGpus | None = None,
        has_checks_before_jobs: bool = False,
        instance: str = "",
    ) -> None:
        self._name = name
        self._instance = instance
        self._controller = controller
        self._server = f"{controller}:{ports.SLURMCTLD}"
        self._is_elastic = is_elastic
        self._gpus = gpus
        self._has_checks_before_jobs = has_checks_before_jobs
        self._is_to_restart = False
        self._started_at = 0.0
        self._signals = Signals(has_children=True)
        self._port = hold(_BCAST)
        self._log = Pump("slurmd", launches.start(name, controller, say))
        """Of each slurmd, and of the slurmstepds that outlive it."""

    def run(self) -> int:
        if os.access(_REMOVER, os.X_OK):
            _keep("the remover", _logged("remover", (_REMOVER,), cwd="/"))
        self._await_daemons()
        if self._signals.is_stopping:
            return 0
        if os.access(_SSHD_KEYS, os.F_OK):
            _keep("sshd", _logged("sshd", _SSHD, cwd="/"))
        if os.environ.get(variables.GPU_METRICS):
            _keep("gpu metrics", _logged("gpu-metrics", _GPU_METRICS))
        node = self._settle()
        threading.Thread(target=self._watch, args=(node,), daemon=True).start()
        while not self._signals.is_stopping:
            try:
                end = f"slurmd ended with code {self._run_slurmd(needs_boot(node))}"
            except OSError as error:  # of too many processes, for instance: jobs run on
                end = f"slurmd cannot be started: {error.strerror}"
            if self._signals.is_stopping:
                break
            say(f"{end}; starting it again in {_AGAIN_S} s (jobs' steps run on)")
            self._pause(_AGAIN_S)
            self._await_munge()
            self._is_to_restart = False
            self._await_gpus()
            try:
                node = read(self._name).node
            except SlurmError:
                node = None  # a reading from hours ago may be wrong now; -b beside running jobs could end them
        self._log.close()
        return 0

    def _run_slurmd(self, is_booted: bool) -> int:
        command = ["slurmd", "-D", *(["-b"] if is_booted else []), "--conf-server", self._server, "-N", self._name]
        command += ["--instance-id", self._instance] if self._instance else []
        out = self._log.fd
        slurmd = subprocess.Popen(command, cwd="/", env={**os.environ, "LD_PRELOAD": _BCAST}, stdout=out, stderr=out)
        self._started_at = time.monotonic()
        kill_at: float | None = None
        while (code := slurmd.poll()) is None:
            now = time.monotonic()
            if kill_at is None and (self._signals.is_stopping or self._is_to_restart):
                slurmd.terminate()
                kill_at = now + _STOP_S
            elif kill_at is not None and now >= kill_at:
                say(f"slurmd did not end within {_STOP_S} s; killing it")
                slurmd.kill()
                kill_at = float("inf")
            self._signals.wait(kill_at - now if kill_at is not None and kill_at < float("inf") else None)
        return code

    def _await_daemons(self) -> None:
        tries = 0
        while not self._signals.is_stopping and not (_answers(self._controller) and _has_munge()):
            if tries % 60 == 0:
                say(f"waiting for munged and for slurmctld at {self._server}")
            tries += 1
            self._pause(0.25)

    def _await_munge(self) -> None:
        """Before slurmd starts again: without munge it would refuse what slurmctld sends, and a batch job that it refuses has FAILED."""
        if not self._signals.is_stopping and not _has_munge():
            say("slurmd waits for munged")
            while not self._signals.is_stopping and not _has_munge():
                self._pause(0.25)

    def _settle(self) -> Node | None:
        """Until nothing of an earlier pod is left; gives the node as it is then, or None when the pod is about to end."""
        last, tries, fault = "", 0, self._gpu_fault()
        while not self._signals.is_stopping:
            try:
                # slurmd has not fetched the files for clients yet.
                reading = read(self._name, self._server)
                change = plan_settle(reading.node, fault, self._has_checks_before_jobs) if reading.node else None
                is_settled = change is None or (tries == _MOST_TRIES and not isinstance(change, Drain))
                if reading.node and not fault and is_settled:
                    self._tell_sockets(reading.node, reading)
                    if set_instance := plan_instance(reading.node, self._instance):
                        write(self._name, set_instance, reading, self._server)
                    return reading.node
                if change:
                    write(self._name, change, reading, self._server)
                    say(_done(change))
                    tries += 1
                    if tries > 1:
                        self._pause(0.5)
                    continue
                now = _held(fault) if reading.node else f"waiting until slurmctld knows node {self._name}"
            except SlurmError as error:
                now = f"waiting for slurmctld's answer about node {self._name}: {error}"
            if now != last:
                say(now)
            last = now
            self._pause(_GPUS_S if fault else 1)
            fault = fault and self._gpu_fault()
        return None

    def _gpu_fault(self) -> str:
        """How the GPUs differ from the config; empty when they do not, and for a node without GPUs."""
        if self._gpus is None:
            return ""
        try:
            found, devices = read_gpus(self._gpus)
        except (GpuError, OSError) as error:
            return f"the driver does not tell which GPUs there are: {error}"
        return describe(compare(self._gpus, found, devices)) or self._make_devices(found)

    def _make_devices(self, found: tuple[Gpu, ...]) -> str:
        """Makes the device files that gres.conf has for instances of MIG, before slurmd looks for them; says why, where that fails."""
        if self._gpus is None or not self._gpus.profiles:
            return ""
        try:
            make_devices([each for gpu in found for each in gpu.instances], self._gpus.profiles, self._gpus.is_simulated)
        except (MigError, OSError) as error:
            return f"the instances of MIG cannot be handed out: {error}"
        return ""

    def _tell_sockets(self, node: Node, reading: Reading) -> None:
        """Has slurmctld keep, as the node's comment, which GPUs are beside other sockets than gres.conf says."""
        if self._gpus is None:
            return
        remark = describe(compare_sockets(self._gpus, read_sockets(self._gpus)))
        if change := plan_remark(node, remark):
            write(self._name, change, reading, self._server)
            say(change.text or "the GPUs are beside the sockets that gres.conf says")

    def _await_gpus(self) -> None:
        """Before slurmd starts again: until the GPUs are those of the config. Running steps need slurmd: for them a drain is enough."""
        told = ""
        while not self._signals.is_stopping and ((fault := self._gpu_fault()) or told):
            now = _held(fault)
            try:
                reading = read(self._name)
                change = plan_gpus(reading.node, fault) if reading.node else None
                if change and not (isinstance(change, Lift) and is_stopping()):
                    write(self._name, change, reading)
                    say(_done(change))
                if not fault:
                    return
            except SlurmError as error:
                now = f"waiting for slurmctld's answer about node {self._name}: {error}"
            if now != told:
                say(now)
            told = now
            if has_steps():
                return
            self._pause(_GPUS_S)

    def _watch(self, before: Node | None) -> None:
        pause_s, told = 1, ""
        while True:
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 15)
            try:
                reading = read(self._name)
                node = reading.node
                if node is None:
                    continue
                if waits_for_power(node.state):
                    before = node
                # After the reading: the hook says that it stops before it drains.
                steps = waits_for_power(node.state) and has_steps()
                change = plan_watch(node, before, self._is_elastic, is_stopping(), time.monotonic() - self._started_at, steps)
                if change is None and self._gpus and node.reason.startswith(reasons.GPUS) and not is_stopping():
                    fault = self._gpu_fault()
                    reading = read(self._name)  # nvidia-smi may have taken long
                    change = plan_gpus(reading.node, fault) if reading.node else None
                if isinstance(change, Restart):
                    say(f"slurmctld has not heard this node (state {node.state}); registering again")
                    self.restart()
                    pause_s = 1
                elif change:
                    write(self._name, change, reading)
                    say(_done(change))
                if not waits_for_power(node.state):
                    before = None
                told = ""
            except SlurmError as error:
                if str(error) != told:
                    say(f"could not check the registration, trying again: {error}")
                told = str(error)

    def restart(self) -> None:
        """Has slurmd end, and start again; from any thread."""
        self._started_at = time.monotonic()
        self._is_to_restart = True
        self._signals.wake()

    def _pause(self, seconds: float) -> None:
        """Waits for this time, or until the end of this program."""
        until = time.monotonic() + seconds
        while not self._signals.is_stopping and (left := until - time.monotonic()) > 0:
            self._signals.wait(left)


def _done(change: Drain | Lift | SetDown) -> str:
    match change:
        case Drain(reason) if reason.startswith(reasons.GPUS):
            return f"drained the node: {reason}"
        case Drain(reason) if reason.startswith(reasons.BEFORE_JOBS):
            return f"drained the node until health checks have passed: {reason}"
        case Drain(reason):
            return f"registering cleared the reason of the drain; wrote it back: {reason}"
        case SetDown():
            return "an earlier pod of this node ended with jobs on it; told slurmctld, which requeues them"
        case Lift(reason):
            return f"lifted the drain of Slipway's own: {reason}"


def _held(fault: str) -> str:
    return f"slurmd waits until the GPUs are those of the config: {fault}"


def _boot() -> str:
    with open(_BOOT_ID, encoding="ascii") as file:
        return file.read()


def _answers(host: str) -> bool:
    try:
        socket.create_connection((host, ports.SLURMCTLD), _DIAL_S).close()
    except OSError:
        return False
    return True


def _has_munge() -> bool:
    command = ["munge", "--no-input", "--output", "/dev/null"]
    try:
        return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=_MUNGE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _keep(program: str, run: Callable[[], int]) -> None:
    """Runs a program beside slurmd from now on, and again after its end. Sessions and jobs are not affected by that end."""

    def keep() -> None:
        while True:
            try:
                end = f"{program} ended with code {run()}"
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:  # of too many processes or threads, for instance
                end = f"{program} cannot be started: {error}"
            say(f"{end}; starting it again in {_AGAIN_S} s (sessions and jobs run on)")
            time.sleep(_AGAIN_S)

    threading.Thread(target=keep, daemon=True).start()


def _logged(daemon: str, command: Sequence[str], cwd: str | None = None) -> Callable[[], int]:
    """Runs a daemon, at each call, with its output in the log."""
    log = Pump(daemon)
    return lambda: subprocess.run(command, cwd=cwd, stdout=log.fd, stderr=log.fd, check=False).returncode


def main() -> int:
    try:
        prepare(say)
    except (PrepareError, OSError, subprocess.CalledProcessError) as error:
        say(str(error))
        return 1
    controller = os.environ[variables.SLURMCTLD]
    declared, is_simulated = os.environ.get(variables.DECLARED_GPUS), os.environ.get(variables.SIMULATED_GPUS, "0") != "0"
    gpus = from_json(declared, is_simulated) if declared else None
    is_elastic, has_checks_before_jobs = (bool(os.environ.get(name)) for name in (variables.ELASTIC, variables.CHECKS_BEFORE_JOBS))
    machine = instance(os.environ.get(variables.MACHINE, ""), _boot())
    worker = Worker(os.uname().nodename, controller, is_elastic, gpus, has_checks_before_jobs, machine)
    # In this process: a container of its own for munged takes a third of the CPU time that it takes to start a worker.
    munged = Munged(say, controller, float(os.environ.get(variables.KEY_LATEST_S) or LATEST_S))

    def run_munged() -> int:
        try:
            return munged.run()
        finally:
            worker.restart()

    _keep("munged", run_munged)
    return worker.run()


if __name__ == "__main__":
    take_stderr("worker")
    sys.exit(main())
