"""The verbs of the local cluster: `up` completes whatever is there, `down` removes all of it. Both can be interrupted and repeated."""

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

from rich.console import Console

from local import (
    cgroups,
    control_plane,
    images,
    layout,
    mounts,
    network,
    node,
    outside,
    packages,
    pki,
    preflight,
    processes,
    rootfs,
    tunables,
)
from local.api import Api, is_node_ready, render_manifests
from local.binaries import KUBERNETES, Cache, pinned_version
from local.commands import LocalError, succeeds, wait_until
from local.layout import NODES, Paths
from local.processes import Program
from local.steps import Step, Steps


@dataclass(frozen=True)
class Health:
    """What `status` shows: whether each program runs, and whether each node is Ready (None: no answer)."""

    programs: dict[str, bool]
    nodes: dict[str, bool] | None

    @property
    def is_up(self) -> bool:
        """True when everything runs."""
        return bool(self.programs) and all(self.programs.values()) and bool(self.nodes) and all(self.nodes.values())


def up(paths: Paths, console: Console) -> None:
    """Makes or completes the cluster. Raises LocalError; what is done stays, and the next `up` resumes."""
    steps = Steps(console)
    cache = Cache(paths.cache)
    with steps.step("Machine") as step:
        built = cache.find()
        preflight.require(preflight.observe(paths, is_built=built is not None))
        step.note = "fit"
    _make_state(paths)
    with _exclusive(paths, console):
        missing = packages.find_missing()
        if missing:
            with steps.step("Debian packages") as step:
                packages.install(missing)
                step.note = ", ".join(missing)
        with steps.step("Programs") as step:
            programs = built or cache.build(step.say)
            step.note = f"Kubernetes {_version()}{', in the cache' if built else ''}"
        if preflight.recorded_owner(paths) != paths.state:
            with steps.step("Leftovers") as step:
                if other_state := preflight.other_owner(paths):  # it may have begun since the first look
                    raise LocalError(
                        f"another local cluster: {other_state} has one on this machine. End it there, or here: {preflight.END_IT}"
                    )
                abandoned = replace(paths, state=preflight.recorded_owner(paths))
                ended = _end(abandoned, step)
                _give_machine_back(abandoned, step)
                step.note = f"of {abandoned.state}, whose control plane has ended{f'; {ended} other programs ended' if ended else ''}"
        started = _start(paths, programs, steps)
    outcome = f"The cluster is up after {steps.seconds:.0f} s." if started else "The cluster was up already; nothing had to be started."
    console.print(f"   {outcome} KUBECONFIG={paths.kubeconfig}", highlight=False, soft_wrap=True)


def build_programs(paths: Paths, console: Console) -> None:
    """Builds what `up` starts, if the machine is fit for it. Raises LocalError."""
    cache = Cache(paths.cache)
    if cache.find() is None:
        preflight.require(preflight.observe(paths, is_built=False))
        cache.build(lambda text: console.print(f"   · {text}", highlight=False, soft_wrap=True))


def down(paths: Paths, console: Console, *, any_checkout: bool = False) -> None:
    """Ends what `up` started, by recorded process and control group, and removes its network, mounts, settings and state.

    Volumes of the StorageClass `local-path` (`.slipway/volumes`) are removed. Host paths, built programs, logs and images in use stay. With
    `any_checkout`, another checkout's cluster goes too. Raises LocalError without root, or if the cluster is another checkout's.
    """
    steps = Steps(console)
    if os.geteuid() != 0:
        raise LocalError("root: ending the local cluster needs it. Run the command again with sudo.")
    if any_checkout and (owner := preflight.recorded_owner(paths)).is_dir():  # else that checkout was removed: control groups say what runs
        paths = replace(paths, state=owner)
    elif not any_checkout and (other_state := preflight.other_owner(paths)):
        raise LocalError(f"the local cluster on this machine belongs to {other_state}. End it there, or here: {preflight.END_IT}")
    _make_state(paths)
    with _exclusive(paths, console):
        with steps.step("Programs and pods") as step:
            ended = _end(paths, step)
            step.note = f"{ended} programs ended" if ended else "none were running"
        with steps.step("Network and namespaces") as step:
            owner = preflight.recorded_owner(paths)
            if owner != paths.state and owner.is_dir():  # its control plane has ended, and its settings stand
                _give_machine_back(replace(paths, state=owner), step)
            _give_machine_back(paths, step)
        with steps.step("State"):
            if used := images.in_use(NODES, paths):
                rootfs.remove_unused(paths.cache, used)
            for folder in (paths.etcd, paths.pki, paths.nodes, paths.volumes, paths.records, paths.bin):
                rmtree(folder, ignore_errors=True)
            for file in (paths.kubeconfig, paths.applied):
                file.unlink(missing_ok=True)


def load_image(archive: Path, paths: Paths, console: Console, files: Mapping[str, str]) -> None:
    """Makes an archive's image known to every node, with `files` added by path. Raises LocalError if the cluster is down."""
    if not paths.kubeconfig.exists():
        raise LocalError("the local cluster is down; start it with: python -m local up")
    with Steps(console).step(archive.name) as step, _exclusive(paths, console):
        image = rootfs.unpack(archive, paths.cache)
        if rootfs.add_files(image, files):
            step.say(f"it has this machine's settings: {', '.join(sorted(files))}")
        loaded = images.load(image, NODES, paths)
        step.note = f"{', '.join(image.references)} {'loaded on ' + ', '.join(loaded) if loaded else 'is on every node already'}"


def health(paths: Paths) -> Health:
    """What runs now, by the records and by the API server's word."""
    boot = processes.boot_id()
    programs = {name: processes.is_alive(record, boot) for name, record in processes.read_records(paths.records).items()}
    kubectl = paths.bin / "kubectl"
    if not kubectl.exists() or not (api := Api(paths, kubectl)).is_ready():
        return Health(programs, None)
    return Health(programs, {item["metadata"]["name"]: is_node_ready(item, None) for item in api.get("node")["items"]})


def _start(paths: Paths, programs: dict[str, Path], steps: Steps) -> list[str]:
    """Starts the rest once the programs are there. Gives the names of what had to be started."""

    def keep(*wanted: Program) -> list[str]:
        return processes.keep_running(wanted, paths.records, paths.logs)

    with steps.step("Network and namespaces") as step:
        _prepare(paths, programs)
        if firewall := outside.find_firewall():
            step.say(f"the machine's firewall drops what pods send out (nft list chain {firewall}): allow forwarding from {layout.BRIDGE}")
        if not (resolvers := outside.find_resolvers()):
            step.say("no resolver in /etc/resolv.conf that pods could ask: names outside the cluster do not exist in it")
    with steps.step("Certificates") as step:
        step.note = "made" if pki.make(paths, programs["kubeadm"], _version(), NODES) else "there already"
        pki.write_kubeconfig(paths)

    recipes = rootfs.our_recipes(programs)
    files = {member: node.config_files(member, paths, recipes["pause"].reference) for member in NODES}
    for path, text in (item for texts in files.values() for item in texts.items()):
        _write(path, text)
    api = Api(paths, programs["kubectl"])

    with steps.step("Control plane and containerd"):
        started = keep(
            control_plane.etcd(paths),
            control_plane.api_server(paths, programs["kube-apiserver"]),
            *(node.containerd(member, paths, files[member]) for member in NODES),
        )
        for member in NODES:
            log = paths.logs / f"containerd-{member.name}.log"
            wait_until(f"containerd of {member.name} answers", lambda at=member: _answers(paths, at), timeout_s=30, log=log)
        for recipe in recipes.values():
            images.load(rootfs.make(recipe, paths.cache), NODES, paths)
        wait_until("the API server is ready", api.is_ready, timeout_s=180, log=paths.logs / "kube-apiserver.log")
        started += keep(
            control_plane.controller_manager(paths, programs["kube-controller-manager"]),
            control_plane.scheduler(paths, programs["kube-scheduler"]),
        )
    with steps.step("Nodes") as step:
        since = datetime.now(UTC)
        kubelets = {member: node.kubelet(member, paths, files[member], programs["kubelet"]) for member in NODES}
        restarted = keep(*kubelets.values())
        started += restarted + keep(*(node.proxy(member, paths, files[member], programs["kube-proxy"]) for member in NODES))
        _apply(api, render_manifests(paths, recipes, resolvers), paths)
        api.wait_for_nodes({member: since if kubelet.name in restarted else None for member, kubelet in kubelets.items()}, timeout_s=180)
        step.note = ", ".join(f"{member.name} ({member.gpus} simulated GPUs)" if member.gpus else member.name for member in NODES)
    with steps.step("DNS and storage"):
        api.wait_for_deployments(180, "kube-system/coredns", "local-path-storage/local-path-provisioner")
    return started


def _end(paths: Paths, step: Step) -> int:
    """Ends all programs and pods of a cluster. Gives the number of its programs. Nothing is saved: nobody needs it."""
    records = processes.running(paths.records)
    processes.stop(records.values(), paths.records, grace_s=0)
    if left := cgroups.kill():
        step.say(f"these processes do not go away: {' '.join(map(str, left))}")
    return len(records)


def _give_machine_back(paths: Paths, step: Step) -> None:
    """Removes what a cluster has on the machine outside its state folder. Nothing of it may be running."""
    network.down(NODES)
    outside.down()
    mounts.down(NODES, paths)
    for path in cgroups.remove():
        step.say(f"{path} is still in use")
    tunables.restore(paths.tunables)
    rmtree(paths.runtime, ignore_errors=True)


def _prepare(paths: Paths, programs: dict[str, Path]) -> None:
    paths.runtime.mkdir(parents=True, exist_ok=True)
    _write(paths.owner, str(paths.state))
    tunables.remember_and_raise(paths.tunables)
    mounts.up(NODES, paths)
    network.up(NODES)
    outside.up()
    for cgroup in (control_plane.CGROUP, *(f"{member.cgroup}/runtime" for member in NODES)):
        cgroups.make(cgroup)
    for folder in (paths.etcd, paths.volumes, paths.bin):
        folder.mkdir(parents=True, exist_ok=True)
    paths.etcd.chmod(0o700)
    for name, program in programs.items():
        link = paths.bin / name
        if not link.is_symlink() or link.readlink() != program:
            link.unlink(missing_ok=True)
            link.symlink_to(program)


def _apply(api: Api, text: str, paths: Paths) -> None:
    """Applies our manifests, once per content."""
    digest = sha256(text.encode()).hexdigest()
    if not paths.applied.exists() or paths.applied.read_text() != digest:
        api.apply(text)
        paths.applied.write_text(digest)


def _write(path: Path, text: str) -> None:
    """Writes a file if its content is new: kube-proxy ends whenever its configuration is written."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.new")
        partial.write_text(text)
        partial.replace(path)


def _answers(paths: Paths, at: layout.Node) -> bool:
    return succeeds([*images.ctr(at, paths), "version"])


def _version() -> str:
    return pinned_version(KUBERNETES, (KUBERNETES.folder / "go.mod").read_text())


def _make_state(paths: Paths) -> None:
    """Volumes in it are open to every user of a pod, so the folder is closed to the machine's other users."""
    paths.state.mkdir(parents=True, exist_ok=True)
    paths.state.chmod(0o700)


@contextmanager
def _exclusive(paths: Paths, console: Console) -> Generator[None]:
    """One verb at a time per state folder."""
    with paths.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.print(" [yellow]…[/] waiting for another `python -m local` to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
