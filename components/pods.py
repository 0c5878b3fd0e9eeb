"""What the pods of a cluster share: image, placement, the munged sidecar, volumes, users. Pure builders.

Daemons find each other by fixed names, and their programs and start scripts wait and retry, so no pod waits for another here.
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
"""SlurmUser; Debian's number, fixed in the image."""
MUNGE_UID = ACCOUNTS["munge"]
SLURMRESTD_UID = ACCOUNTS["slurmrestd"]
MYSQL_UID = ACCOUNTS["mysql"]

SHARED_PACKAGES = ("names", "slurm")
"""Packages that all programs import: folders in the project's root and in `paths.PACKAGES`."""
CLUSTER_DOMAIN = "cluster.local"
LOW_PORTS_ARE_ROOTS: Manifest = {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "1024"}]}
"""For pods that users run programs in. NFS servers trust ports below 1024, and container runtimes set this to 0 in pods."""
TERMINATION_LOG = "/root/termination-log"
"""For containers that users run programs in. All users of a pod can write to this file of Kubernetes, so it is in a folder that only root
can enter. /dev, its usual place, is also in jobs and sessions."""
LOST_NODE_S = 30
"""How long a pod of the control plane stays on a node that Kubernetes has lost, instead of five minutes."""

PROGRAM_MEMORY = "1Gi"
"""Memory limit of a program with a bounded need: several times what any used in tests, so a leak ends it before other pods suffer."""
DAEMON_MEMORY = "16Gi"
"""Memory limit of a daemon whose need grows with the cluster: far above that of 10,000 nodes, so only a leak reaches it."""


class PodDefaults(TypedDict):
    """What all pods of one cluster have in common."""

    cluster: str
    """Name of the cluster and prefix of its objects."""
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
    """Names of the ConfigMaps with Python packages, by folder: the shared ones, and the programs that this stack runs."""
    node_selector: dict[str, str]
    """Labels of the nodes for all pods except workers."""
    tolerations: list[dict[str, Any]]
    """Taints of those nodes."""


def pod_defaults(cluster: Cluster, image: str, scripts: str, programs: dict[str, str]) -> PodDefaults:
    """The defaults of all pods: the image, the ConfigMaps of start scripts and programs, the system nodes."""
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
    """Tolerations of exactly these taints."""
    return [{"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect} for taint in taints]


def pod_template(
    defaults: PodDefaults, component: str, spec: Manifest, nodeset: str | None = None, annotations: dict[str, str] | None = None
) -> Manifest:
    """A pod template: the cluster's defaults, overridden by `spec`. By default there is no service account token."""
    about = {"labels": labels(defaults["cluster"], component, nodeset), **({"annotations": annotations} if annotations else {})}
    shared: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": [{"name": name} for name in defaults["pull_secrets"]],
        "nodeSelector": defaults["node_selector"],
        "tolerations": defaults["tolerations"],
        # A node name such as gpu-0 resolves in every pod, as all workers are in one headless Service.
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
    """A container of the Slurm image that runs a start script, or the `command` in `more` if `script` is empty.

    `requests` are CPU and memory; `limit` is the memory limit, and empty for none. `more` is added unchanged. The output of a script and
    its daemon becomes lines of slurm/logs, so the pod needs the volumes of `program_volumes` with the package `slurm`.
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
        "volumeMounts": [*([scripts_mount()] if script else []), *_with_missing(mounts, program_mounts() if script else [])],
        **more,
    }


def _with_missing(mounts: Sequence[Manifest], extras: Sequence[Manifest]) -> list[Manifest]:
    """These mounts, and those of the others whose path is not mounted yet."""
    paths_taken = {extra["mountPath"] for extra in mounts}
    return [*mounts, *(extra for extra in extras if extra["mountPath"] not in paths_taken)]


def resources(requests: tuple[str, str], memory_limit: str) -> Manifest:
    """Requests of CPU and memory, and the memory limit unless it is empty. CPU has no limit: it would slow a daemon down on an idle
    machine."""
    limits = {"limits": {"memory": memory_limit}} if memory_limit else {}
    return {"requests": {"cpu": requests[0], "memory": requests[1]}, **limits}


def confined(uid: int) -> Manifest:
    """The security context of a daemon that needs only its own user."""
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
    """munged as a native sidecar: it starts before the pod's daemons and ends after them. Workers run it beside slurmd instead.

    It needs `munge_volumes` and the volumes of the program `munged`. `origin` is a host name: credentials contain its address as their
    origin instead of the pod's.
    """
    return container(
        defaults,
        "munged",
        "",
        # The parent of munged's folder, which munged creates: it rejects a volume's folder, which is open to all.
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
    """The mount of the munge key, for programs/munged."""
    return mount("munge-key", paths.MUNGE_KEY, read_only=True)


def munge_key_volume(defaults: PodDefaults, mode: int) -> Manifest:
    """The volume of `munge_key_mount`."""
    return secret_volume("munge-key", object_name(defaults["cluster"], "munge"), mode=mode)


def munge_volumes(defaults: PodDefaults) -> list[Manifest]:
    """The volumes of the key, which only the sidecar mounts, and of the socket, which it shares with the pod's daemons."""
    return [
        # Readable by the sidecar's user without an fsGroup, which would change the owner of files on shared volumes.
        munge_key_volume(defaults, 0o444),
        empty_volume("munge", in_memory=True),
        empty_volume("munge-state", in_memory=True),
    ]


def scripts_mount() -> Manifest:
    """The mount of the start scripts."""
    return mount("scripts", paths.SCRIPTS, read_only=True)


def scripts_volume(defaults: PodDefaults) -> Manifest:
    """The volume of the start scripts, which are executable."""
    return config_volume("scripts", defaults["scripts"], mode=0o555)


def program_command(program: str, *arguments: str, module: str = "run", imports_debian: bool = False) -> list[str]:
    """The command that runs a module of a program in the working directory `paths.PACKAGES`.

    Only the working directory and Python's standard library are on its path. So environment variables do not change its imports, and it
    starts in 20 ms. `imports_debian` adds the Python packages of the image.
    """
    return ["python3", "-EsB" if imports_debian else "-EsSB", "-m", f"programs.{program}.{module}", *arguments]


def pump_command(daemon: str, *command: str) -> list[str]:
    """The command that runs another in `paths.PACKAGES` and makes log lines of its output, see slurm/pump."""
    return ["python3", "-EsSB", "-m", "slurm.pump", daemon, "--", *command]


def daemon_command(program: str) -> list[str]:
    """The command that runs a program with daemons below an init, which reaps orphans and forwards signals to the program."""
    return ["tini", "--", *program_command(program)]


def program_mounts(*programs: str) -> list[Manifest]:
    """The mounts of a container that runs programs: the shared packages, and each program's own."""
    own_mounts = [mount(_program_volume(program), f"{paths.PACKAGES}/programs/{program}", read_only=True) for program in programs]
    return [*(mount(package, f"{paths.PACKAGES}/{package}", read_only=True) for package in SHARED_PACKAGES), *own_mounts]


def program_volumes(defaults: PodDefaults, *programs: str) -> list[Manifest]:
    """The volumes of `program_mounts`, for the programs of all containers of a pod."""
    own_volumes = [config_volume(_program_volume(program), defaults["programs"][program]) for program in programs]
    return [*(config_volume(package, defaults["programs"][package]) for package in SHARED_PACKAGES), *own_volumes]


def _program_volume(program: str) -> str:
    return f"program-{program.replace('_', '-')}"


def mount(volume: str, path: str, read_only: bool = False) -> Manifest:
    """The mount of a volume."""
    return {"name": volume, "mountPath": path, **({"readOnly": True} if read_only else {})}


MUNGE_SOCKET: list[Manifest] = [mount("munge", paths.MUNGE_RUN, read_only=True)]
"""The mount of a daemon that authenticates with the munged sidecar. It is read-only, which permits connections: an emptyDir is open to all,
so with write access anyone could replace munged's socket."""


def config_volume(name: str, config_map: str, mode: int = 0o444) -> Manifest:
    """A volume with all files of a ConfigMap; `mode` is the mode of each file."""
    return {"name": name, "configMap": {"name": config_map, "defaultMode": mode}}


def annotation_volume(name: str, file: str, annotation: str) -> Manifest:
    """A folder with one file that contains an annotation of the pod, and is empty while it has none. The kubelet updates the file."""
    items = [{"path": file, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}]
    return {"name": name, "downwardAPI": {"items": items}}


def secret_volume(name: str, secret: str, mode: int = 0o440) -> Manifest:
    """A volume with all files of a Secret, which the group of the pod's fsGroup may read."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": mode}}


def empty_volume(name: str, in_memory: bool = False) -> Manifest:
    """A folder with the lifetime of the pod."""
    return {"name": name, "emptyDir": {"medium": "Memory"} if in_memory else {}}


def tcp_probe(port: int, **timing: int) -> Manifest:
    """Succeeds if something listens on the port. `timing` has Kubernetes' keys, in seconds."""
    return {"tcpSocket": {"port": port}, **timing}


def exec_probe(*command: str, **timing: int) -> Manifest:
    """Succeeds if the command exits with 0. `timing` has Kubernetes' keys, in seconds."""
    return {"exec": {"command": list(command)}, **timing}


def http_probe(port: int, path: str, **timing: int) -> Manifest:
    """Succeeds if the path answers 200. `timing` has Kubernetes' keys, in seconds."""
    return {"httpGet": {"port": port, "path": path}, **timing}


def service(defaults: PodDefaults, component: str, port: int, headless: bool = False, **more: Any) -> Manifest:
    """The Service `<cluster>-<component>` of a component's pods, with the port of its daemon.

    A headless Service includes pods that are not ready, so that peers can connect to them while they start.
    """
    cluster = defaults["cluster"]
    spec: Manifest = {"selector": selector(cluster, component), "ports": [{"name": component, "port": port, "targetPort": port}], **more}
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    about = component_metadata(cluster, defaults["namespace"], component, SKIP_AWAIT)
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def lost_node_tolerations() -> list[Manifest]:
    """Tolerations that let a pod stay on a lost node for LOST_NODE_S; Kubernetes' default is five minutes."""
    return [
        {"key": f"node.kubernetes.io/{reason}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_S}
        for reason in ("not-ready", "unreachable")
    ]
