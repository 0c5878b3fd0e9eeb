"""One set of Slurm nodes as a NodeSet object: their number and the template of their pods. The NodeSet controller makes the pods, their
claims and their disruption budget; slurm.conf lists the nodes that exist in Slurm.

Unknown is busy: nothing here restarts or evicts a worker. The controller drains a node before it replaces its pod, and a pod that others
delete drains its Slurm node and waits for its jobs.
"""

import math

import pulumi

from components.check_jobs import CHECKS_BEFORE_JOBS, check_jobs
from components.claims import claim_template
from components.controller_settings import controller_settings
from components.declared_gpus import build_declared_gpus
from components.declared_sets import declared_sets_name
from components.host_keys import node_secret_name
from components.labels import Manifest, labels, metadata, object_name
from components.machine_causes import build_machine_causes
from components.node_pool import gpu_resource, node_selector
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
    tolerations,
)
from components.shared_mounts import build_mount, build_volume, shared_mounts
from components.shared_root import settings_name
from components.users import keys_mount, user_keys_name, users_mount, users_name
from configs.models.cluster import Cluster
from configs.models.health_checks import looks_at
from configs.models.node_set import NodeSet
from configs.models.shapes import machine_of, shape_of
from configs.models.topology import Topology
from configs.render import shared_root, slurm
from configs.render.gpu_jobs import FOLDER as GPU_JOBS_PATH
from configs.render.gpu_jobs import HOST_FOLDER, notes_gpu_jobs
from configs.render.health_checks import checks_beside_jobs
from names import annotations, crds, paths, ports, variables
from programs.worker.settings import to_json

TMP_PATH = shared_root.TMP
"""Private /tmp folders of jobs."""
CONTAINERS_PATH = shared_root.CONTAINERS
"""Images and containers of jobs."""
SPOOL_PATH = shared_root.SPOOL
"""slurmd's folder on a node: state, scripts of running jobs."""
SSH_PORT = 22
"""sshd on workers has the usual port, so that `ssh -J LOGIN NODE` from outside needs none."""
_STOP_S = 30
"""Time for slurmd to stop, on top of the time for its jobs."""
_PULL_S = 300
"""How long a deployment waits for a set, on top of Slurm's own limit: for the controller and a first pull of the image."""
_SLURMD_MIB = 256
"""Memory of a worker pod for slurmd and its steps, on top of the memory for jobs."""
_CPU_SHARE = 0.9
"""Share of Slurm's CPUs that a worker pod requests; the rest is for Kubernetes' own pods on the machine."""


class NodeSetComponent(pulumi.ComponentResource):
    """Slurm workers: pod name = host name = Slurm node name. A change of the pod reaches each node when it is drained; the set's name and
    cluster never change in place."""

    name: pulumi.Output[str]
    """Name of the NodeSet object."""
    node_names: pulumi.Output[str]
    """The Slurm nodes as a range, for instance `gpu-[0-7]`; for an elastic set, with all nodes that it can have."""

    def __init__(
        self, name: str, cluster: Cluster, pods: PodDefaults, node_set: NodeSet, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("slipway:index:NodeSet", name, {}, opts)
        # Without wait_for_drains, the controller deletes a set that leaves the list of declared sets, and the engine only forgets it.
        forgotten = pulumi.ResourceOptions(parent=self, retain_on_delete=not cluster.kubernetes.wait_for_drains)
        declare(build_node_set(cluster, pods, node_set), forgotten, name=object_name(cluster.name, node_set.name))
        self.name = pulumi.Output.from_input(node_set.name)
        self.node_names = pulumi.Output.from_input(node_range(node_set.name, node_set.ordinals))
        self.register_outputs({"name": self.name, "node_names": self.node_names})


def node_range(name: str, size: int) -> str:
    """The Slurm nodes of a set as a range; empty for none."""
    return f"{name}-[0-{size - 1}]" if size > 1 else f"{name}-0" * size


def _topology(topology: Topology) -> Manifest:
    """A topology in the NodeSet object, by which the controller places nodes."""
    blocks = {"blocks": topology.block.count} if topology.block is not None else {}
    return {"name": topology.name, "labels": list(topology.labels), **blocks}


def build_node_set(cluster: Cluster, pods: PodDefaults, node_set: NodeSet) -> Manifest:
    """The NodeSet object. Its size does not depend on the number of nodes."""
    checks = [check.name for check in cluster.health_checks if looks_at(check, node_set)]
    started_checks = check_jobs(cluster, node_set)
    first_checks = node_set.checks_before_jobs
    about_pods = CHECKS_BEFORE_JOBS if first_checks else None
    resume_timeout_s = cluster.slurm.resume_timeout_s
    spec: Manifest = {
        "cluster": cluster.name,
        **({"min": node_set.min or 0, "max": node_set.max} if node_set.is_elastic else {"replicas": node_set.size or 0}),
        "ordinals": node_set.ordinals,
        "template": pod_template(pods, "slurmd", _pod(cluster, pods, node_set), node_set.name, about_pods),
        **controller_settings(node_set),
        "healthChecks": checks,
        **({"checkJobs": list(started_checks)} if started_checks else {}),
        **({"checksBeforeJobs": list(first_checks)} if first_checks else {}),
        "machineCauses": build_machine_causes(node_set, cluster.ec2 is not None),
        "resumeTimeoutSeconds": resume_timeout_s,
    }
    if cluster.topologies:
        spec["topologies"] = [_topology(topology) for topology in cluster.topologies]
    if cluster.label_features:
        spec["labelFeatures"] = list(cluster.label_features)
        spec["features"] = list(node_set.features)
    if node_set.volume_claims:
        spec["volumeClaimTemplates"] = [claim_template(claim.name, claim) for claim in node_set.volume_claims]
    object_annotations = {
        # The controller sets Ready when enough nodes are registered, so one broken machine of a thousand fails no deployment.
        "pulumi.com/waitFor": "condition=Ready",
        "pulumi.com/timeoutSeconds": str(resume_timeout_s + _PULL_S),
        # In the foreground, Kubernetes would delete the pods first and at once, before the controller could drain their nodes.
        "pulumi.com/deletionPropagationPolicy": "background",
        **({} if cluster.kubernetes.wait_for_drains else {annotations.DECLARED_IN: declared_sets_name(cluster.name)}),
    }
    about = metadata(node_set.name, cluster.namespace, labels(cluster.name, "slurmd", node_set.name), object_annotations)
    return {"apiVersion": crds.API_VERSION, "kind": "NodeSet", "metadata": about, "spec": spec}


def _pod(cluster: Cluster, pods: PodDefaults, node_set: NodeSet) -> Manifest:
    pool = cluster.node_pool(node_set.pool)
    has_ssh, has_ldap = cluster.login.ssh_to_nodes, cluster.login.ldap is not None
    return {
        # With the host name from the controller, the name of a node resolves before it is ready.
        "subdomain": object_name(cluster.name, "slurmd"),
        "nodeSelector": node_selector(pool),
        "tolerations": [*tolerations(pool.taints), *_lost_machine_tolerations()],
        "terminationGracePeriodSeconds": node_set.drain_grace_s + _STOP_S,
        **({"runtimeClassName": pool.runtime_class} if pool.runtime_class is not None else {}),
        "securityContext": LOW_PORTS_ARE_ROOTS,
        "containers": [_slurmd(cluster, pods, node_set)],
        "volumes": [
            # Users from LDAP are in a folder of the shared volume, which is always mounted.
            *([] if has_ldap else [config_volume("users", users_name(cluster.name))]),
            *(empty_volume("spool"), empty_volume("run"), empty_volume("shm", in_memory=True)),
            *program_volumes(pods, *_programs(cluster, node_set)),
            munge_key_volume(pods, 0o400),
            *(build_volume(cluster.name, shared) for shared in shared_mounts(cluster, cluster.mounts_of(node_set))),
            *([config_volume("root", settings_name(cluster.name))] if cluster.storage.root is not None else []),
            *(empty_volume(name) for name, path in _JOB_FOLDERS.items() if _shares_disk(node_set, path)),
            *([secret_volume("node-host-keys", node_secret_name(cluster.name), mode=0o400)] if has_ssh else []),
            *([config_volume("user-keys", user_keys_name(cluster.name))] if has_ssh and not has_ldap else []),
            *([annotation_volume("place", "address", annotations.TOPOLOGY_ADDRESS)] if cluster.topologies else []),
            *([_gpu_jobs_volume()] if _has_exporter(cluster, node_set) else []),
        ],
    }


def _gpu_jobs_volume() -> Manifest:
    """A folder of the machine, for the exporter of its GPUs, which runs outside this pod."""
    return {"name": "gpu-jobs", "hostPath": {"path": HOST_FOLDER, "type": "DirectoryOrCreate"}}


def _simulates_exporter(cluster: Cluster, node_set: NodeSet) -> bool:
    """True if the worker itself serves metrics of its simulated GPUs."""
    return notes_gpu_jobs(cluster, node_set) and node_set.simulated_gpus


def _has_exporter(cluster: Cluster, node_set: NodeSet) -> bool:
    """True if there are real GPUs, whose metrics come from DCGM."""
    return notes_gpu_jobs(cluster, node_set) and not node_set.simulated_gpus


_JOB_FOLDERS = {"tmp": TMP_PATH, "containers": CONTAINERS_PATH}
"""Folders of workers for jobs: their /tmp, and images of containers, as the kernel cannot overlay the file system of a pod's own image."""


def _programs(cluster: Cluster, node_set: NodeSet) -> tuple[str, ...]:
    runs_checks = any(looks_at(check, node_set) for check in checks_beside_jobs(cluster))
    return ("munged", "worker", *(("node_checks",) if runs_checks else ()))


def _shares_disk(node_set: NodeSet, path: str) -> bool:
    """True if a folder for jobs is on the machine's disk, not on a claim of the set."""
    return all(claim.mount_path != path for claim in node_set.volume_claims)


def _lost_machine_tolerations() -> list[Manifest]:
    """Tolerations for ever: jobs may still run on a machine that Kubernetes has lost, and only Slurm knows."""
    return [{"key": f"node.kubernetes.io/{reason}", "operator": "Exists", "effect": "NoExecute"} for reason in ("not-ready", "unreachable")]


def _slurmd(cluster: Cluster, pods: PodDefaults, node_set: NodeSet) -> Manifest:
    shape = shape_of(cluster, node_set)
    declared_gpus = build_declared_gpus(shape, machine_of(cluster.node_pool(node_set.pool)))
    job_processes, job_disks = slurm.job_processes(cluster), slurm.job_disks(node_set)
    has_ssh = cluster.login.ssh_to_nodes
    simulates_exporter = _simulates_exporter(cluster, node_set)
    env = {
        variables.NODESET: node_set.name,
        variables.DRAIN_GRACE_S: str(node_set.drain_grace_s),
        variables.GPUS: str(shape.gpu_count),
        variables.SIMULATED_GPUS: str(shape.gpu_count if node_set.simulated_gpus else 0),
        **({variables.DECLARED_GPUS: to_json(declared_gpus)} if declared_gpus is not None else {}),
        **({variables.JOB_PROCESSES: job_processes} if job_processes else {}),
        **({variables.JOB_DISKS: job_disks} if job_disks else {}),
        **({variables.ELASTIC: "1"} if node_set.is_elastic else {}),
        **({variables.CHECKS_BEFORE_JOBS: "1"} if node_set.checks_before_jobs else {}),
        **({variables.GPU_METRICS: "1"} if simulates_exporter else {}),
    }
    mounts = [
        *(users_mount(cluster), munge_key_mount(), mount("spool", SPOOL_PATH)),
        *program_mounts(*_programs(cluster, node_set)),
        *(mount("run", paths.SLURM_RUN), mount("shm", "/dev/shm")),  # noqa: S108 - a mount of the pod's own
        *(build_mount(shared) for shared in shared_mounts(cluster, cluster.mounts_of(node_set))),
        *(mount(claim.name, claim.mount_path) for claim in node_set.volume_claims),
        *([mount("root", paths.ROOT_SETTINGS, read_only=True)] if cluster.storage.root is not None else []),
        *(mount(name, path) for name, path in _JOB_FOLDERS.items() if _shares_disk(node_set, path)),
        *([mount("node-host-keys", paths.NODE_HOST_KEYS, read_only=True), keys_mount(cluster)] if has_ssh else []),
        *([mount("place", paths.PLACE, read_only=True)] if cluster.topologies else []),
        *([mount("gpu-jobs", GPU_JOBS_PATH)] if _has_exporter(cluster, node_set) else []),
    ]
    gpu_metrics = [("gpu-metrics", ports.GPU_METRICS)] if simulates_exporter else []
    container_ports = [("slurmd", ports.SLURMD), *([("ssh", SSH_PORT)] if has_ssh else []), *gpu_metrics]
    slurmd = container(pods, "slurmd", "", mounts, env, command=daemon_command("worker"))
    return {
        **slurmd,
        "env": [*slurmd["env"], {"name": variables.MACHINE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "workingDir": paths.PACKAGES,
        "resources": build_resources(cluster, node_set),
        "ports": [{"name": name, "containerPort": port} for name, port in container_ports],
        "terminationMessagePath": TERMINATION_LOG,
        # Slurm creates cgroups, restricts devices and starts jobs as their users.
        "securityContext": {"privileged": True},
        "lifecycle": {"preStop": {"exec": {"command": program_command("worker", module="stop")}}},
        # No liveness probe: a restart of this container ends its jobs, so only the end of slurmd may cause one.
        # slurmd usually listens within two seconds. An earlier probe fails, which costs an event, two writes and five seconds.
        "readinessProbe": tcp_probe(ports.SLURMD, initialDelaySeconds=2, periodSeconds=5),
    }


def build_resources(cluster: Cluster, node_set: NodeSet) -> Manifest:
    """Requests and limits of one node. By default, it requests nearly all resources of its jobs. CPU has no limit, as Slurm binds jobs to
    CPUs. GPUs are equal in both, as Kubernetes requires for extended resources."""
    shape, requested = shape_of(cluster, node_set), node_set.resources
    most_mib = shape.memory_mib + _SLURMD_MIB
    gpus = {gpu_resource(cluster.node_pool(node_set.pool)): str(shape.gpu_count)} if shape.gpu_count else {}
    cpu = requested.cpu or f"{math.floor(shape.cpus * 1000 * _CPU_SHARE)}m"
    return {
        "requests": {"cpu": cpu, "memory": f"{requested.memory_mib or most_mib}Mi", **gpus},
        "limits": {"memory": f"{most_mib}Mi", **gpus},
    }
