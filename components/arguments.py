"""From one cluster's config to each component's arguments: the only place where the two meet. Pure; reads no file, registers nothing."""

import math
from typing import Any

from components.accounting import AccountingArgs
from components.control_plane import ControlPlaneArgs
from components.labels import object_name
from components.login import LoginNodesArgs, LoginServiceArgs
from components.munge import MungeSecretArgs
from components.node_set import NodeSetArgs, WorkerPoolArgs
from components.pods import ClaimArgs, PodDefaults
from components.shared_storage import SharedMountArgs, SharedStorageArgs
from configs import slurm
from configs.models import Cluster, Disk, Mount, NodePool, NodeSet, Source, Taint
from configs.shapes import machine_of, shape_of

POOL_LABEL = "slipway.dev/pool"
"""On every node of an EKS pool, with the pool's name."""
_SLURMD_MIB = 256
"""Memory of a worker pod beside what Slurm gives to jobs: slurmd and its steps, in MiB."""
_CPU_SHARE = 0.9
"""CPU that a worker pod requests of what Slurm hands out; the rest is for what Kubernetes itself runs on the machine."""


def pod_defaults(cluster: Cluster, image: str, scripts: str) -> PodDefaults:
    """What all pods share: the image, the ConfigMap of start scripts, the system nodes."""
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "image": image,
        "pull_policy": cluster.images.pull_policy,
        "pull_secrets": list(cluster.images.pull_secrets),
        "scripts": scripts,
        "node_selector": dict(cluster.system_nodes.labels),
        "tolerations": tolerations(cluster.system_nodes.taints),
    }


def tolerations(taints: tuple[Taint, ...]) -> list[dict[str, Any]]:
    """Exactly those taints, and no others."""
    return [{"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect} for taint in taints]


def munge_args(cluster: Cluster) -> MungeSecretArgs:
    return {"cluster": cluster.name, "namespace": cluster.namespace, "deletion_protection": cluster.deletion_protection}


def shared_mounts(cluster: Cluster, further: tuple[Mount, ...]) -> list[SharedMountArgs]:
    """The shared root, homes and the further mounts of one kind of pod."""
    storage = cluster.storage
    return [
        shared_mount("shared-root", "/shared", storage.shared_root),
        shared_mount("home", "/home", storage.home),
        # A prefix keeps a user's names and those of a pod's own volumes apart.
        *(shared_mount(f"mount-{mount.name}", mount.mount_path, mount, mount.read_only) for mount in further),
    ]


def shared_mount(name: str, path: str, source: Source, read_only: bool = False) -> SharedMountArgs:
    """One shared folder; of its source only what is said."""
    made: SharedMountArgs = {"name": name, "mount_path": path, "read_only": read_only}
    if source.host_path is not None:
        made["host_path"] = source.host_path
    elif source.claim is not None:
        made["claim"] = source.claim
    elif source.nfs is not None:
        made["nfs"] = {"server": source.nfs.server, "path": source.nfs.path, "options": list(source.nfs.options)}
    elif source.storage_class is not None:
        made["storage_class"] = source.storage_class
        made["size"] = source.size or ""
    return made


def storage_args(cluster: Cluster) -> SharedStorageArgs:
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "mounts": shared_mounts(cluster, cluster.storage.mounts),
        "deletion_protection": cluster.deletion_protection,
    }


def claim(disk: Disk) -> ClaimArgs:
    """A daemon's own disk; without a class, the Kubernetes cluster's default one."""
    made: ClaimArgs = {"size": disk.size}
    if disk.storage_class is not None:
        made["storage_class"] = disk.storage_class
    return made


def control_plane_args(cluster: Cluster, pods: PodDefaults) -> ControlPlaneArgs:
    return {
        "pods": pods,
        "files": slurm.render(cluster),
        "users": object_name(cluster.name, "users"),
        "state": claim(cluster.storage.state),
        "deletion_protection": cluster.deletion_protection,
    }


def accounting_args(cluster: Cluster, pods: PodDefaults) -> AccountingArgs:
    return {
        "pods": pods,
        "slurmdbd_conf": slurm.render_slurmdbd(cluster),
        "users": object_name(cluster.name, "users"),
        "jwt_secret": object_name(cluster.name, "jwt"),
        "storage": claim(cluster.accounting.storage),
        "deletion_protection": cluster.deletion_protection,
    }


def node_set_args(cluster: Cluster, pods: PodDefaults, node_set: NodeSet) -> NodeSetArgs:
    """One node set on its pool. Requests are what the config overrides, else nearly the whole of what Slurm hands out."""
    shape = shape_of(cluster, node_set)
    requested = node_set.resources
    return {
        "pods": pods,
        "name": node_set.name,
        "size": node_set.size,
        "pool": worker_pool(cluster.node_pool(node_set.pool)),
        "cpu_request": requested.cpu or f"{math.floor(shape.cpus * 1000 * _CPU_SHARE)}m",
        "memory_request_mib": requested.memory_mib or shape.memory_mib + _SLURMD_MIB,
        "memory_limit_mib": shape.memory_mib + _SLURMD_MIB,
        "gpus": shape.gpu_count,
        "simulated_gpus": node_set.simulated_gpus,
        "users": object_name(cluster.name, "users"),
        "mounts": shared_mounts(cluster, cluster.mounts_of(node_set)),
        "drain_grace_s": node_set.drain_grace_s,
    }


def worker_pool(pool: NodePool) -> WorkerPoolArgs:
    """Where the pods of a pool's node sets go."""
    gpus = machine_of(pool).gpus
    vendor_resource = f"{gpus.vendor if gpus else 'nvidia'}.com/gpu"
    where: WorkerPoolArgs = {
        "node_selector": dict(pool.existing.labels) if pool.existing else {POOL_LABEL: pool.name},
        "tolerations": tolerations(pool.existing.taints if pool.existing else pool.eks.taints if pool.eks else ()),
        "gpu_resource": pool.existing.gpu_resource if pool.existing else vendor_resource,
    }
    if pool.runtime_class is not None:
        where["runtime_class"] = pool.runtime_class
    return where


def login_args(cluster: Cluster, pods: PodDefaults) -> LoginNodesArgs:
    said = cluster.login.service
    service: LoginServiceArgs = {"type": said.type, "annotations": dict(said.annotations), "source_ranges": list(said.source_ranges)}
    if said.node_port is not None:
        service["node_port"] = said.node_port
    return {
        "pods": pods,
        "replicas": cluster.login.replicas,
        "service": service,
        "users": object_name(cluster.name, "users"),
        "user_keys": object_name(cluster.name, "user-keys"),
        "mounts": shared_mounts(cluster, cluster.storage.mounts),
        "deletion_protection": cluster.deletion_protection,
    }
