"""One set of Slurm nodes, for now a StatefulSet of fixed size. Which nodes exist in Slurm is said in slurm.conf, rendered elsewhere.

Unknown is busy: nothing here restarts or evicts a worker by itself. Kubernetes may not evict its pods, a changed template waits until
a pod is deleted, and a pod that is deleted drains its Slurm node and waits for its jobs.
"""

from typing import Any, NotRequired, TypedDict

import pulumi

from components.labels import Manifest, labels, metadata, object_name, selector
from components.objects import declare
from components.pods import (
    MUNGE_SOCKET,
    SCRIPTS_PATH,
    SLURMD_PORT,
    PodDefaults,
    config_volume,
    container,
    empty_volume,
    mount,
    munge_volumes,
    munged,
    pod_template,
    scripts_volume,
    tcp_probe,
)
from components.shared_storage import SharedMountArgs, build_mount, build_volume

SPOOL_PATH = "/var/spool/slurmd"
"""slurmd's own folder on a node: state, scripts of running jobs."""
_STOP_S = 30
"""Seconds that slurmd gets to stop, on top of what its jobs get."""


class WorkerPoolArgs(TypedDict):
    """The machines a node set runs on."""

    node_selector: dict[str, str]
    """Labels of their Kubernetes nodes."""
    tolerations: list[dict[str, Any]]
    """Taints of these nodes."""
    runtime_class: NotRequired[str]
    """RuntimeClass of the pods, for instance `nvidia`."""
    gpu_resource: NotRequired[str]
    """What Kubernetes calls their GPUs, for instance `nvidia.com/gpu`."""


class NodeSetArgs(TypedDict):
    """What a node set needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    name: str
    """Name of the set; its Slurm nodes and pods are `<name>-0`, `<name>-1` and so on."""
    size: int
    """How many nodes."""
    pool: WorkerPoolArgs
    """The machines they run on."""
    cpu_request: str
    """CPU that Kubernetes sets aside for one node, for instance `500m`; there is no limit, Slurm binds jobs to CPUs."""
    memory_request_mib: int
    """Memory that Kubernetes sets aside for one node, in MiB."""
    memory_limit_mib: int
    """Memory that one node may use at most, in MiB: what Slurm may give to jobs."""
    gpus: int
    """GPUs of one node; 0 for none."""
    simulated_gpus: bool
    """True: stand-in devices are made for the GPUs. For development only."""
    users: str
    """Name of the ConfigMap with the cluster's users."""
    mounts: list[SharedMountArgs]
    """Shared folders that jobs see."""
    drain_grace_s: int
    """Seconds that a stopping node waits for its jobs."""


class NodeSet(pulumi.ComponentResource):
    """Slurm workers: pod name = host name = Slurm node name. A change of the pod reaches a node when its pod is next deleted."""

    node_names: pulumi.Output[str]
    """The Slurm nodes as a range, for instance `gpu-[0-7]`."""

    def __init__(self, name: str, args: NodeSetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:NodeSet", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        for manifest in (build_disruption_budget(args), build_stateful_set(args)):
            declare(manifest, child, name=object_name(args["pods"]["cluster"], args["name"]))
        self.node_names = pulumi.Output.from_input(node_range(args["name"], args["size"]))
        self.register_outputs({"node_names": self.node_names})


def node_range(name: str, size: int) -> str:
    """The Slurm nodes of a set as a range; empty for none."""
    return f"{name}-[0-{size - 1}]" if size > 1 else f"{name}-0" * size


def build_stateful_set(args: NodeSetArgs) -> Manifest:
    """The StatefulSet of a node set. Its replicas are the only thing that grows with the number of nodes."""
    pods = args["pods"]
    cluster = pods["cluster"]
    # Ready with the first node: one broken machine of a thousand fails no deployment, and Slurm shows which it is.
    wait = {"pulumi.com/waitFor": "jsonpath={.status.readyReplicas}"} if args["size"] else {"pulumi.com/skipAwait": "true"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(args["name"], pods["namespace"], labels(cluster, "slurmd", args["name"]), wait),
        "spec": {
            "replicas": args["size"],
            "serviceName": object_name(cluster, "slurmd"),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": selector(cluster, "slurmd", args["name"])},
            "template": pod_template(pods, "slurmd", _pod(args), args["name"]),
        },
    }


def build_disruption_budget(args: NodeSetArgs) -> Manifest:
    """No pod of the set may be evicted: who empties a machine drains its Slurm node, then deletes the pod."""
    pods = args["pods"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(args["name"], pods["namespace"], labels(pods["cluster"], "slurmd", args["name"])),
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": selector(pods["cluster"], "slurmd", args["name"])}},
    }


def _pod(args: NodeSetArgs) -> Manifest:
    pods, pool = args["pods"], args["pool"]
    return {
        "nodeSelector": pool["node_selector"],
        "tolerations": pool["tolerations"],
        "terminationGracePeriodSeconds": args["drain_grace_s"] + _STOP_S,
        **({"runtimeClassName": pool["runtime_class"]} if "runtime_class" in pool else {}),
        "initContainers": [munged(pods)],
        "containers": [_slurmd(args)],
        "volumes": [
            *(config_volume("users", args["users"]), empty_volume("spool"), empty_volume("run"), empty_volume("shm", in_memory=True)),
            *(scripts_volume(pods), *munge_volumes(pods)),
            *(build_volume(pods["cluster"], source) for source in args["mounts"]),
        ],
    }


def _slurmd(args: NodeSetArgs) -> Manifest:
    env = {
        "SLIPWAY_NODESET": args["name"],
        "SLIPWAY_DRAIN_GRACE_S": str(args["drain_grace_s"]),
        "SLIPWAY_SIMULATED_GPUS": str(args["gpus"] if args["simulated_gpus"] else 0),
    }
    mounts = [
        *(mount("users", "/var/lib/extrausers", read_only=True), *MUNGE_SOCKET, mount("spool", SPOOL_PATH)),
        *(mount("run", "/run/slurm"), mount("shm", "/dev/shm")),  # noqa: S108 - a mount of the pod's own
        *(build_mount(source) for source in args["mounts"]),
    ]
    return {
        **container(args["pods"], "slurmd", "slurmd.sh", mounts, env),
        "resources": build_resources(args),
        "ports": [{"name": "slurmd", "containerPort": SLURMD_PORT}],
        # Slurm makes cgroups, sets devices apart and starts jobs as their users.
        "securityContext": {"privileged": True},
        "lifecycle": {"preStop": {"exec": {"command": [f"{SCRIPTS_PATH}/slurmd-prestop.sh"]}}},
        # No liveness probe: a restart of this container ends its jobs, so only slurmd's own end may cause one.
        "readinessProbe": tcp_probe(SLURMD_PORT, periodSeconds=5),
    }


def build_resources(args: NodeSetArgs) -> Manifest:
    """Requests and limits of one node; Kubernetes wants GPUs, as any extended resource, equal in both."""
    gpu_resource = args["pool"].get("gpu_resource")
    gpus = {gpu_resource: str(args["gpus"])} if gpu_resource and args["gpus"] else {}
    return {
        "requests": {"cpu": args["cpu_request"], "memory": f"{args['memory_request_mib']}Mi", **gpus},
        "limits": {"memory": f"{args['memory_limit_mib']}Mi", **gpus},
    }
