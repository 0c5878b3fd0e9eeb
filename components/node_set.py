"""One set of Slurm nodes as an object of the kind NodeSet: how many, and the whole pod that each is made from. The NodeSet controller makes
the pods, their claims and their disruption budget; slurm.conf, rendered elsewhere, lists the nodes that exist in Slurm.

Unknown is busy: nothing here restarts or evicts a worker. A changed pod reaches a node when the controller has drained it, and a pod that
is deleted by others drains its Slurm node and waits for its jobs.
"""

import json
import math
from typing import NotRequired, TypedDict

import pulumi

from components.check_jobs import CHECKED_FIRST, check_jobs
from components.claims import claim_template
from components.controller_settings import controller_settings
from components.declared_gpus import build_declared_gpus
from components.declared_sets import declared_sets_name
from components.host_keys import node_secret_name
from components.labels import Manifest, labels, metadata, object_name
from components.machine_causes import build_machine_causes
from components.node_pool import WorkerPoolArgs, worker_pool
from components.objects import declare
from components.pods import (
    LOW_PORTS_ARE_ROOTS,
    TERMINATION_LOG,
    PodDefaults,
    annotation_volume,
    config_volume,
    container,
    daemon_command,
    empty_volume,
    mount,
    munge_key_mount,
    munge_key_volume,
    pod_template,
    program_command,
    program_mounts,
    program_volumes,
    secret_volume,
    tcp_probe,
)
from components.shared_mounts import SharedMount, build_mount, build_volume, shared_mounts
from components.shared_root import settings_name
from components.users import identity_volume, keys_mount, user_keys_name, users_mount, users_name
from configs.models.cluster import Cluster
from configs.models.health_checks import looks_at
from configs.models.node_set import NodeSet as NodeSetConfig
from configs.models.node_set import VolumeClaim
from configs.models.shapes import machine_of, shape_of
from configs.models.topology import Topology
from configs.render import shared_root, slurm
from configs.render.gpu_jobs import FOLDER as GPU_JOBS_PATH
from configs.render.gpu_jobs import HOST_FOLDER, notes_gpu_jobs
from configs.render.health_checks import checks_beside_jobs
from names import annotations, crds, paths, ports, variables

TMP_PATH = shared_root.TMP
CONTAINERS_PATH = shared_root.CONTAINERS
"""Private /tmp folders of jobs."""
SPOOL_PATH = shared_root.SPOOL
"""slurmd's own folder on a node: state, scripts of running jobs."""
SSH_PORT = 22
"""Of sshd on workers: the usual port, so that `ssh -J LOGIN NODE` from outside needs no port."""
_STOP_S = 30
"""Seconds that slurmd gets to stop, on top of what its jobs get."""
_PULL_S = 300
"""Seconds on top of Slurm's own limit that a deployment waits for a set: the controller's part, and a first pull of the image."""
_SLURMD_MIB = 256
"""Memory of a worker pod beside what Slurm gives to jobs: slurmd and its steps, in MiB."""
_CPU_SHARE = 0.9
"""CPU that a worker pod requests of what Slurm hands out; the rest is for what Kubernetes itself runs on the machine."""


class NodeSshArgs(TypedDict):
    """What the sshd of a worker needs. It admits only users with a job there."""

    host_keys: str
    """Name of the Secret with the workers' host key."""
    user_keys: str
    """Name of the ConfigMap with each user's public keys, under the user's name."""


class NodeSetArgs(TypedDict):
    """What a node set needs to know. A fixed set has `size`, an elastic set `min` and `max`."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    name: str
    """Name of the set; its Slurm nodes and pods are `<name>-0`, `<name>-1` and so on."""
    size: NotRequired[int]
    """Nodes of a fixed set."""
    min: NotRequired[int]
    """Nodes of an elastic set that stay up without a job."""
    max: NotRequired[int]
    """Nodes that an elastic set may grow to."""
    ordinals: int
    """Nodes that slurm.conf has for the set."""
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
    declared_gpus: NotRequired[Manifest]
    """What the worker compares with the GPUs that it finds before it starts slurmd."""
    simulated_gpus: bool
    """True: stand-in devices are made for the GPUs. For development only."""
    users: str
    """Name of the ConfigMap with the cluster's users."""
    topologies: NotRequired[list[Manifest]]
    """The networks by which Slurm places jobs: name, labels of the machines from the top, and for blocks how many there can be."""
    label_features: NotRequired[tuple[str, ...]]
    """Labels of the machines that become Slurm features."""
    features: NotRequired[tuple[str, ...]]
    """Beside `label_features`: the features that slurm.conf gives all nodes of the set."""
    health_checks: tuple[str, ...]
    """Names of the health checks that look at the set's nodes."""
    check_jobs: tuple[str, ...]
    """Names of those of them that the controller may start as jobs."""
    checks_before_jobs: tuple[str, ...]
    """Names of those that a machine has to pass before its node takes jobs."""
    machine_causes: list[Manifest]
    """Which conditions and taints of the machines are causes of the nodes on them: the first that matches decides."""
    runs_checks: NotRequired[bool]
    """True: slurmd runs health checks beside the jobs of the set's nodes."""
    notes_gpu_jobs: NotRequired[bool]
    """True: which job has which GPU is noted for metrics, and simulated GPUs have metrics of their own."""
    identity: NotRequired[SharedMount]
    """The shared volume, one of `mounts`, where users come from LDAP: from its folder `identity` instead of the ConfigMap."""
    mounts: list[SharedMount]
    """Shared folders that jobs see."""
    root: NotRequired[str]
    """ConfigMap with the settings of the versioned root, where jobs see that root."""
    ssh: NotRequired[NodeSshArgs]
    """What sshd needs, where users may go to workers with ssh."""
    drain_grace_s: int
    """Seconds that a stopping node waits for its jobs."""
    job_processes: str
    """Processes that a job may have on a node, and how many more for each of its CPUs: `512+256`; empty for no limit."""
    job_disks: str
    """What jobs have of the node's disk: `tmp=20480 scratch=102400`, in MiB; empty for nothing of their own."""
    settings: Manifest
    """What the controller decides by, as the spec of the NodeSet object has it."""
    volume_claims: tuple[VolumeClaim, ...]
    """Disks of each node's own."""
    resume_timeout_s: int
    """Seconds that a node has from its pod's making to its registration; Slurm's ResumeTimeout."""
    declared_in: NotRequired[str]
    """ConfigMap that lists the declared sets: the controller deletes the set when it leaves the list, and the engine only forgets it. Left
    out where the engine is to delete the set, and to wait until it is drained."""


def node_set_args(cluster: Cluster, pods: PodDefaults, node_set: NodeSetConfig) -> NodeSetArgs:
    """One node set on its pool. Requests are those of the config, or else nearly all that Slurm gives to jobs."""
    shape = shape_of(cluster, node_set)
    requested = node_set.resources
    args: NodeSetArgs = {
        "pods": pods,
        "name": node_set.name,
        "ordinals": node_set.ordinals,
        "pool": worker_pool(cluster.node_pool(node_set.pool)),
        "cpu_request": requested.cpu or f"{math.floor(shape.cpus * 1000 * _CPU_SHARE)}m",
        "memory_request_mib": requested.memory_mib or shape.memory_mib + _SLURMD_MIB,
        "memory_limit_mib": shape.memory_mib + _SLURMD_MIB,
        "gpus": shape.gpu_count,
        "simulated_gpus": node_set.simulated_gpus,
        "users": users_name(cluster.name),
        "mounts": shared_mounts(cluster, cluster.mounts_of(node_set)),
        "drain_grace_s": node_set.drain_grace_s,
        "job_processes": slurm.job_processes(cluster),
        "job_disks": slurm.job_disks(node_set),
        "settings": controller_settings(node_set),
        "volume_claims": node_set.volume_claims,
        "resume_timeout_s": cluster.slurm.resume_timeout_s,
        "check_jobs": check_jobs(cluster, node_set),
        "checks_before_jobs": node_set.checks_before_jobs,
        "health_checks": tuple(check.name for check in cluster.health_checks if looks_at(check, node_set)),
        "machine_causes": build_machine_causes(node_set, cluster.ec2 is not None),
    }
    if gpus := build_declared_gpus(shape, machine_of(cluster.node_pool(node_set.pool))):
        args["declared_gpus"] = gpus
    if any(looks_at(check, node_set) for check in checks_beside_jobs(cluster)):
        args["runs_checks"] = True
    if notes_gpu_jobs(cluster, node_set):
        args["notes_gpu_jobs"] = True
    if (identity := identity_volume(cluster)) is not None:
        args["identity"] = identity
    if cluster.topologies:
        args["topologies"] = [_topology(topology) for topology in cluster.topologies]
    if cluster.label_features:
        args["label_features"] = cluster.label_features
        args["features"] = node_set.features
    if cluster.storage.root is not None:
        args["root"] = settings_name(cluster.name)
    if cluster.login.ssh_to_nodes:
        args["ssh"] = {"host_keys": node_secret_name(cluster.name), "user_keys": user_keys_name(cluster.name)}
    if node_set.is_elastic:
        args["min"] = node_set.min or 0
        args["max"] = node_set.ordinals
    else:
        args["size"] = node_set.size or 0
    if not cluster.kubernetes.wait_for_drains:
        args["declared_in"] = declared_sets_name(cluster.name)
    return args


class NodeSet(pulumi.ComponentResource):
    """Slurm workers: pod name = host name = Slurm node name. A change of the pod reaches each node when it is drained; the set's own name
    and cluster never change in place."""

    name: pulumi.Output[str]
    """Name of the NodeSet object."""
    node_names: pulumi.Output[str]
    """The Slurm nodes as a range, for instance `gpu-[0-7]`; of an elastic set, all that there can be."""

    def __init__(self, name: str, args: NodeSetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:NodeSet", name, {}, opts)
        forgotten = pulumi.ResourceOptions(parent=self, retain_on_delete="declared_in" in args)
        declare(build_node_set(args), forgotten, name=object_name(args["pods"]["cluster"], args["name"]))
        self.name = pulumi.Output.from_input(args["name"])
        self.node_names = pulumi.Output.from_input(node_range(args["name"], args["ordinals"]))
        self.register_outputs({"name": self.name, "node_names": self.node_names})


def node_range(name: str, size: int) -> str:
    """The Slurm nodes of a set as a range; empty for none."""
    return f"{name}-[0-{size - 1}]" if size > 1 else f"{name}-0" * size


def _topology(topology: Topology) -> Manifest:
    """A topology as the NodeSet controller places nodes by it."""
    blocks = {"blocks": topology.block.count} if topology.block is not None else {}
    return {"name": topology.name, "labels": list(topology.labels), **blocks}


def build_node_set(args: NodeSetArgs) -> Manifest:
    """The NodeSet object. Counts are the only thing that grows with the number of nodes."""
    pods = args["pods"]
    spec: Manifest = {
        "cluster": pods["cluster"],
        **({"min": args.get("min", 0), "max": args["max"]} if "max" in args else {"replicas": args.get("size", 0)}),
        "ordinals": args["ordinals"],
        "template": pod_template(pods, "slurmd", _pod(args), args["name"], CHECKED_FIRST if args["checks_before_jobs"] else None),
        **args["settings"],
        "healthChecks": list(args["health_checks"]),
        **({"checkJobs": list(args["check_jobs"])} if args["check_jobs"] else {}),
        **({"checksBeforeJobs": list(args["checks_before_jobs"])} if args["checks_before_jobs"] else {}),
        "machineCauses": args["machine_causes"],
        "resumeTimeoutSeconds": args["resume_timeout_s"],
    }
    if "topologies" in args:
        spec["topologies"] = args["topologies"]
    if "label_features" in args:
        spec["labelFeatures"] = list(args["label_features"])
        spec["features"] = list(args.get("features", ()))
    if args["volume_claims"]:
        spec["volumeClaimTemplates"] = [claim_template(claim.name, claim) for claim in args["volume_claims"]]
    about = {
        # Ready is the controller's word: enough nodes are registered. One broken machine of a thousand fails no deployment.
        "pulumi.com/waitFor": "condition=Ready",
        "pulumi.com/timeoutSeconds": str(args["resume_timeout_s"] + _PULL_S),
        # In the foreground Kubernetes would delete the pods first, at once, and the controller could not drain their nodes.
        "pulumi.com/deletionPropagationPolicy": "background",
        **({annotations.DECLARED_IN: args["declared_in"]} if "declared_in" in args else {}),
    }
    meta = metadata(args["name"], pods["namespace"], labels(pods["cluster"], "slurmd", args["name"]), about)
    return {"apiVersion": crds.API_VERSION, "kind": "NodeSet", "metadata": meta, "spec": spec}


def _pod(args: NodeSetArgs) -> Manifest:
    pods, pool = args["pods"], args["pool"]
    return {
        # With the host name that the controller sets, the name of a node resolves before it is ready.
        "subdomain": object_name(pods["cluster"], "slurmd"),
        "nodeSelector": pool["node_selector"],
        "tolerations": [*pool["tolerations"], *_lost_machine_tolerations()],
        "terminationGracePeriodSeconds": args["drain_grace_s"] + _STOP_S,
        **({"runtimeClassName": pool["runtime_class"]} if "runtime_class" in pool else {}),
        "securityContext": LOW_PORTS_ARE_ROOTS,
        "containers": [_slurmd(args)],
        "volumes": [
            *([] if "identity" in args else [config_volume("users", args["users"])]),
            *(empty_volume("spool"), empty_volume("run"), empty_volume("shm", in_memory=True)),
            *program_volumes(pods, *_programs(args)),
            munge_key_volume(pods, 0o400),
            *(build_volume(pods["cluster"], source) for source in args["mounts"]),
            *([config_volume("root", args["root"])] if "root" in args else []),
            *(empty_volume(name) for name, path in _JOB_FOLDERS.items() if _shares_disk(args, path)),
            *([secret_volume("node-host-keys", args["ssh"]["host_keys"], mode=0o400)] if "ssh" in args else []),
            *([config_volume("user-keys", args["ssh"]["user_keys"])] if "ssh" in args and "identity" not in args else []),
            *([annotation_volume("place", "address", annotations.TOPOLOGY_ADDRESS)] if args.get("topologies") else []),
            # A folder of the machine: the exporter of its GPUs runs there, and not in this pod.
            *([{"name": "gpu-jobs", "hostPath": {"path": HOST_FOLDER, "type": "DirectoryOrCreate"}}] if _has_exporter(args) else []),
        ],
    }


def _simulates_exporter(args: NodeSetArgs) -> bool:
    return args.get("notes_gpu_jobs", False) and args["simulated_gpus"] and "declared_gpus" in args


def _has_exporter(args: NodeSetArgs) -> bool:
    """True where real GPUs are, whose metrics are DCGM's."""
    return args.get("notes_gpu_jobs", False) and not args["simulated_gpus"]


_JOB_FOLDERS = {"tmp": TMP_PATH, "containers": CONTAINERS_PATH}
"""What workers keep for jobs: their /tmp, and images of containers, whose files the kernel does not lay over those of a pod's own image."""


def _programs(args: NodeSetArgs) -> tuple[str, ...]:
    return ("munged", "worker", *(("node_checks",) if args.get("runs_checks") else ()))


def _shares_disk(args: NodeSetArgs, path: str) -> bool:
    """True when a folder for jobs is on the machine's own disk, not on a disk that the set claims for it."""
    return all(claim.mount_path != path for claim in args["volume_claims"])


def _lost_machine_tolerations() -> list[Manifest]:
    """For ever: jobs may still run on a machine that Kubernetes has lost, and only Slurm knows."""
    return [{"key": f"node.kubernetes.io/{reason}", "operator": "Exists", "effect": "NoExecute"} for reason in ("not-ready", "unreachable")]


def _slurmd(args: NodeSetArgs) -> Manifest:
    env = {
        variables.NODESET: args["name"],
        variables.DRAIN_GRACE_S: str(args["drain_grace_s"]),
        variables.GPUS: str(args["gpus"]),
        variables.SIMULATED_GPUS: str(args["gpus"] if args["simulated_gpus"] else 0),
        **({variables.DECLARED_GPUS: json.dumps(args["declared_gpus"])} if "declared_gpus" in args else {}),
        **({variables.JOB_PROCESSES: args["job_processes"]} if args["job_processes"] else {}),
        **({variables.JOB_DISKS: args["job_disks"]} if args["job_disks"] else {}),
        **({variables.ELASTIC: "1"} if "max" in args else {}),
        **({variables.CHECKED_FIRST: "1"} if args["checks_before_jobs"] else {}),
        **({variables.GPU_METRICS: "1"} if _simulates_exporter(args) else {}),
    }
    mounts = [
        *(users_mount(args.get("identity")), munge_key_mount(), mount("spool", SPOOL_PATH)),
        *program_mounts(*_programs(args)),
        *(mount("run", paths.SLURM_RUN), mount("shm", "/dev/shm")),  # noqa: S108 - a mount of the pod's own
        *(build_mount(source) for source in args["mounts"]),
        *(mount(claim.name, claim.mount_path) for claim in args["volume_claims"]),
        *([mount("root", paths.ROOT_SETTINGS, read_only=True)] if "root" in args else []),
        *(mount(name, path) for name, path in _JOB_FOLDERS.items() if _shares_disk(args, path)),
        *([mount("node-host-keys", paths.NODE_HOST_KEYS, read_only=True), keys_mount(args.get("identity"))] if "ssh" in args else []),
        *([mount("place", paths.PLACE, read_only=True)] if args.get("topologies") else []),
        *([mount("gpu-jobs", GPU_JOBS_PATH)] if _has_exporter(args) else []),
    ]
    gpu_metrics = [("gpu-metrics", ports.GPU_METRICS)] if _simulates_exporter(args) else []
    container_ports = [("slurmd", ports.SLURMD), *([("ssh", SSH_PORT)] if "ssh" in args else []), *gpu_metrics]
    slurmd = container(args["pods"], "slurmd", "", mounts, env, command=daemon_command("worker"))
    return {
        **slurmd,
        "env": [*slurmd["env"], {"name": variables.MACHINE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "workingDir": paths.PACKAGES,
        "resources": build_resources(args),
        "ports": [{"name": name, "containerPort": port} for name, port in container_ports],
        "terminationMessagePath": TERMINATION_LOG,
        # Slurm makes cgroups, sets devices apart and starts jobs as their users.
        "securityContext": {"privileged": True},
        "lifecycle": {"preStop": {"exec": {"command": program_command("worker", module="stop")}}},
        # No liveness probe: a restart of this container ends its jobs, so only slurmd's own end may cause one.
        # slurmd listens within two seconds as a rule. A look before that fails: an event, two writes, and five seconds until the next look.
        "readinessProbe": tcp_probe(ports.SLURMD, initialDelaySeconds=2, periodSeconds=5),
    }


def build_resources(args: NodeSetArgs) -> Manifest:
    """Requests and limits of one node; Kubernetes wants GPUs, as any extended resource, equal in both."""
    gpu_resource = args["pool"].get("gpu_resource")
    gpus = {gpu_resource: str(args["gpus"])} if gpu_resource and args["gpus"] else {}
    return {
        "requests": {"cpu": args["cpu_request"], "memory": f"{args['memory_request_mib']}Mi", **gpus},
        "limits": {"memory": f"{args['memory_limit_mib']}Mi", **gpus},
    }
