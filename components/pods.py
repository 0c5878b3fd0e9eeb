"""What the pods of a cluster share: image, placement, the munged sidecar, volumes, who runs as whom. Pure builders of manifests.

Daemons find each other by fixed names, so no pod waits for another here: their programs and start scripts wait and retry.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from components.labels import Manifest, component_metadata, labels, object_name, selector
from components.objects import SKIP_AWAIT
from configs.models.cluster import Cluster
from configs.models.node_pool import Taint
from names import paths, variables
from slurm.people import ACCOUNTS

SLURM_UID = ACCOUNTS["slurm"]
"""SlurmUser, Debian's own number; fixed in the image."""
MUNGE_UID = ACCOUNTS["munge"]
SLURMRESTD_UID = ACCOUNTS["slurmrestd"]
MYSQL_UID = ACCOUNTS["mysql"]


SHARED_PACKAGES = ("names", "slurm")
"""What all programs import, at the root of the project and below `paths.PACKAGES` alike."""
CLUSTER_DOMAIN = "cluster.local"
LOW_PORTS_ARE_ROOTS: Manifest = {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "1024"}]}
"""Of pods that users run programs in. NFS servers believe what comes from a port below 1024; container runtimes set it to 0 in pods."""
TERMINATION_LOG = "/root/termination-log"
"""Of containers that users run programs in. All of a pod's users can write to this file of Kubernetes', so it is where only root enters:
/dev, its usual place, is in jobs and sessions, too."""
LOST_NODE_S = 30
"""Seconds that a pod of the control plane stays on a node that Kubernetes has lost, instead of five minutes."""

PROGRAM_MEMORY = "1Gi"
"""The most memory of a program whose need has a bound: several times what any took in tests. A leak ends it before other pods suffer."""
DAEMON_MEMORY = "16Gi"
"""The most memory of a daemon whose need grows with the cluster: far above that of 10,000 nodes, so that only a leak gets there."""


class PodDefaults(TypedDict):
    """What every pod of one cluster has in common."""

    cluster: str
    """Name of the cluster, prefix of its objects."""
    namespace: str
    """Namespace of all its pods."""
    image: str
    """Full reference of the Slurm image."""
    pull_policy: str
    """IfNotPresent, Always or Never."""
    pull_secrets: list[str]
    """Names of Secrets with registry credentials."""
    scripts: str
    """Name of the ConfigMap with the start scripts."""
    programs: dict[str, str]
    """Names of the ConfigMaps with Python packages: the shared ones, and the programs that this stack runs, by their folders' names."""
    node_selector: dict[str, str]
    """Labels of the nodes that pods other than workers run on."""
    tolerations: list[dict[str, Any]]
    """Taints of those nodes."""


def pod_defaults(cluster: Cluster, image: str, scripts: str, programs: dict[str, str]) -> PodDefaults:
    """What all pods share: the image, the ConfigMaps of start scripts and programs, the system nodes."""
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "image": image,
        "pull_policy": cluster.images.pull_policy,
        "pull_secrets": list(cluster.images.pull_secrets),
        "scripts": scripts,
        "programs": programs,
        "node_selector": dict(cluster.system_nodes.labels),
        "tolerations": tolerations(cluster.system_nodes.taints),
    }


def tolerations(taints: tuple[Taint, ...]) -> list[dict[str, Any]]:
    """Exactly those taints, and no others."""
    return [{"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect} for taint in taints]


def pod_template(
    defaults: PodDefaults, component: str, spec: Manifest, nodeset: str | None = None, annotations: dict[str, str] | None = None
) -> Manifest:
    """A pod template: the cluster's defaults under what `spec` says. No pod gets a service account token: none talks to Kubernetes."""
    about = {"labels": labels(defaults["cluster"], component, nodeset), **({"annotations": annotations} if annotations else {})}
    shared: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": [{"name": name} for name in defaults["pull_secrets"]],
        "nodeSelector": defaults["node_selector"],
        "tolerations": defaults["tolerations"],
        # A node name such as gpu-0 resolves in every pod, whatever its node set: all workers are under one headless Service.
        "dnsConfig": {"searches": [f"{object_name(defaults['cluster'], 'slurmd')}.{defaults['namespace']}.svc.{CLUSTER_DOMAIN}"]},
    }
    return {"metadata": about, "spec": {**shared, **spec}}


def container(
    defaults: PodDefaults,
    name: str,
    script: str,
    mounts: Sequence[Manifest],
    env: Mapping[str, str] | None = None,
    requests: tuple[str, str] = ("10m", "32Mi"),
    limit: str = PROGRAM_MEMORY,
    **more: Any,
) -> Manifest:
    """A container of the Slurm image that runs a start script, or with an empty `script` what `command` in `more` says.

    `requests` are CPU and memory, `limit` is the most memory; an empty one is no limit. `more` is added as it is. What a script and its
    daemon say becomes lines of slurm/logs: the pod has the volumes of `program_volumes`, which hold the package `slurm`.
    """
    environment = {
        variables.CLUSTER: defaults["cluster"],
        variables.SLURMCTLD: object_name(defaults["cluster"], "slurmctld"),
        **(env or {}),
    }
    return {
        "name": name,
        "image": defaults["image"],
        "imagePullPolicy": defaults["pull_policy"],
        **(
            {"command": pump_command(script.removesuffix(".sh"), f"{paths.SCRIPTS}/{script}"), "workingDir": paths.PACKAGES}
            if script
            else {}
        ),
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "resources": resources(requests, limit),
        "volumeMounts": [*([scripts_mount()] if script else []), *_once(mounts, program_mounts() if script else [])],
        **more,
    }


def _once(mounts: Sequence[Manifest], extras: Sequence[Manifest]) -> list[Manifest]:
    """These mounts, and of the others those that they lack."""
    paths_taken = {extra["mountPath"] for extra in mounts}
    return [*mounts, *(extra for extra in extras if extra["mountPath"] not in paths_taken)]


def resources(requests: tuple[str, str], memory_limit: str) -> Manifest:
    """What a container asks for, CPU and memory, and the most memory that it gets, where that is not empty. CPU has no limit: it would
    slow a daemon down while the machine is idle."""
    limits = {"limits": {"memory": memory_limit}} if memory_limit else {}
    return {"requests": {"cpu": requests[0], "memory": requests[1]}, **limits}


def confined(uid: int) -> Manifest:
    """The security context of a daemon that needs nothing but its own user."""
    return {
        "runAsUser": uid,
        "runAsGroup": uid,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def root_context(*capabilities: str, read_only: bool = True) -> Manifest:
    """The security context of root with no capabilities but these; `read_only` is its root file system."""
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": False,
        **({"readOnlyRootFilesystem": True} if read_only else {}),
        "capabilities": {"drop": ["ALL"], **({"add": [*capabilities]} if capabilities else {})},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def munged(defaults: PodDefaults, origin: str | None = None) -> Manifest:
    """munged as a native sidecar: it is up before the pod's daemons start, and ends after them. Workers run it beside slurmd instead.

    Its volumes are `munge_volumes`, and those of the program `munged`. `origin` is a host name whose address credentials name as their
    origin, in place of the pod's own.
    """
    return container(
        defaults,
        "munged",
        "",
        # The folder above munged's own, which it makes itself: it distrusts a folder that a volume opens to all.
        [munge_key_mount(), mount("munge", paths.MUNGE_RUN), mount("munge-state", "/var/lib"), *program_mounts("munged")],
        {variables.ORIGIN: origin} if origin else None,
        requests=("10m", "24Mi"),
        command=daemon_command("munged"),
        workingDir=paths.PACKAGES,
        restartPolicy="Always",
        securityContext=confined(MUNGE_UID),
        startupProbe=exec_probe("test", "-S", f"{paths.MUNGE_RUN}/munge.socket.2", periodSeconds=1, failureThreshold=60),
    )


def munge_key_mount() -> Manifest:
    """Where programs/munged finds the key."""
    return mount("munge-key", paths.MUNGE_KEY, read_only=True)


def munge_key_volume(defaults: PodDefaults, mode: int) -> Manifest:
    """The volume behind `munge_key_mount`."""
    return secret_volume("munge-key", object_name(defaults["cluster"], "munge"), mode=mode)


def munge_volumes(defaults: PodDefaults) -> list[Manifest]:
    """The key, which only the sidecar mounts, and the socket, which it shares with the pod's daemons."""
    return [
        # Readable by the sidecar's own user without an fsGroup, which would re-own the files of shared volumes.
        munge_key_volume(defaults, 0o444),
        empty_volume("munge", in_memory=True),
        empty_volume("munge-state", in_memory=True),
    ]


def scripts_mount() -> Manifest:
    """Where the start scripts are."""
    return mount("scripts", paths.SCRIPTS, read_only=True)


def scripts_volume(defaults: PodDefaults) -> Manifest:
    """The start scripts, executable."""
    return config_volume("scripts", defaults["scripts"], mode=0o555)


def program_command(program: str, *arguments: str, module: str = "run", imports_debian: bool = False) -> list[str]:
    """Runs a module of a program in the working directory `paths.PACKAGES`.

    Only the working directory and Python's own library are on its path, so no environment variable changes what it imports, and it starts
    in 20 ms. `imports_debian` adds the Python packages of the image.
    """
    return ["python3", "-EsB" if imports_debian else "-EsSB", "-m", f"programs.{program}.{module}", *arguments]


def pump_command(daemon: str, *command: str) -> list[str]:
    """Runs a command whose output becomes lines of the log, in the working directory `paths.PACKAGES`: see slurm/pump."""
    return ["python3", "-EsSB", "-m", "slurm.pump", daemon, "--", *command]


def daemon_command(program: str) -> list[str]:
    """Runs a program that starts daemons, below an init: what they leave behind is reaped, and signals go to the program."""
    return ["tini", "--", *program_command(program)]


def program_mounts(*programs: str) -> list[Manifest]:
    """What a container mounts that runs programs: the packages that they share, and each program's own."""
    own_mounts = [mount(_program_volume(program), f"{paths.PACKAGES}/programs/{program}", read_only=True) for program in programs]
    return [*(mount(package, f"{paths.PACKAGES}/{package}", read_only=True) for package in SHARED_PACKAGES), *own_mounts]


def program_volumes(defaults: PodDefaults, *programs: str) -> list[Manifest]:
    """The volumes behind `program_mounts`, of all containers of a pod."""
    own_volumes = [config_volume(_program_volume(program), defaults["programs"][program]) for program in programs]
    return [*(config_volume(package, defaults["programs"][package]) for package in SHARED_PACKAGES), *own_volumes]


def _program_volume(program: str) -> str:
    return f"program-{program.replace('_', '-')}"


def mount(volume: str, path: str, read_only: bool = False) -> Manifest:
    """Where a container sees a volume."""
    return {"name": volume, "mountPath": path, **({"readOnly": True} if read_only else {})}


MUNGE_SOCKET: list[Manifest] = [mount("munge", paths.MUNGE_RUN, read_only=True)]
"""What a daemon mounts to authenticate where munged has a container of its own. Read-only, which a connection does not mind: an emptyDir is
open to all, and whoever can write there could put a socket of their own in munged's place."""


def config_volume(name: str, config_map: str, mode: int = 0o444) -> Manifest:
    """All files of a ConfigMap; `mode` is for each file."""
    return {"name": name, "configMap": {"name": config_map, "defaultMode": mode}}


def annotation_volume(name: str, file: str, annotation: str) -> Manifest:
    """A folder with one file: the pod's own annotation, empty while it has none. The kubelet follows changes of the annotation."""
    items = [{"path": file, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}]
    return {"name": name, "downwardAPI": {"items": items}}


def secret_volume(name: str, secret: str, mode: int = 0o440) -> Manifest:
    """All files of a Secret; with the pod's fsGroup, that group may read them."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": mode}}


def empty_volume(name: str, in_memory: bool = False) -> Manifest:
    """A folder that lives as long as the pod."""
    return {"name": name, "emptyDir": {"medium": "Memory"} if in_memory else {}}


def tcp_probe(port: int, **timing: int) -> Manifest:
    """Ready when something listens on the port; `timing` in the words of Kubernetes, in seconds."""
    return {"tcpSocket": {"port": port}, **timing}


def exec_probe(*command: str, **timing: int) -> Manifest:
    """Ready when the command gives 0; `timing` in the words of Kubernetes, in seconds."""
    return {"exec": {"command": list(command)}, **timing}


def http_probe(port: int, path: str, **timing: int) -> Manifest:
    """Ready when the path answers 200; `timing` in the words of Kubernetes, in seconds."""
    return {"httpGet": {"port": port, "path": path}, **timing}


def service(defaults: PodDefaults, component: str, port: int, headless: bool = False, **more: Any) -> Manifest:
    """The Service `<cluster>-<component>` in front of a component's pods, on the port that its daemon listens on.

    A headless Service also answers for pods that are not ready, so that peers can be dialled while they start.
    """
    cluster = defaults["cluster"]
    spec: Manifest = {"selector": selector(cluster, component), "ports": [{"name": component, "port": port, "targetPort": port}], **more}
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    about = component_metadata(cluster, defaults["namespace"], component, SKIP_AWAIT)
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def lost_node_tolerations() -> list[Manifest]:
    """How long a pod stays on a node that went away; Kubernetes gives a pod five minutes unless it says so itself."""
    return [
        {"key": f"node.kubernetes.io/{reason}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_S}
        for reason in ("not-ready", "unreachable")
    ]
