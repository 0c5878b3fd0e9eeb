"""From one cluster's config to each component's arguments: the only place where the two meet. Pure; reads no file, registers nothing."""

import math
from typing import Any

from components.accounting import AccountingArgs, AccountsArgs
from components.backup import BACKUP_PATH, BackupArgs
from components.control_plane import ControlPlaneArgs
from components.controllers import ControllersArgs
from components.database import ExternalDatabaseArgs
from components.gpu_node_pool import EksNodesArgs, ExistingNodesArgs, GpuNodePoolArgs, TaintArgs
from components.gpu_runtime import OPERATOR_CLASS, GpuRuntimeArgs
from components.health_checks import CheckedNodesArgs, HealthCheckArgs, HealthChecksArgs
from components.host_keys import NodeHostKeyArgs, node_secret_name
from components.identity import IdentityArgs, LdapArgs
from components.kinds import KindsArgs
from components.labels import object_name
from components.login import LoginNodesArgs, LoginServiceArgs
from components.munge import MungeSecretArgs
from components.nfs_server import ExportedFolderArgs, NfsServerArgs
from components.node_set import SPOOL_PATH, DrainArgs, NodeSetArgs, VolumeClaimArgs, WorkerPoolArgs, declared_sets_name
from components.pods import ROOT_SETTINGS, SLURM_UID, ClaimArgs, PodDefaults
from components.shared_root import RootVersionArgs, SharedRootArgs, settings_name
from components.shared_storage import SharedMountArgs, SharedStorageArgs
from components.slurm_files import SlurmFilesArgs
from configs.models.accounting import Backup
from configs.models.cluster import Cluster
from configs.models.health_checks import CHECK_SETTINGS, HealthCheck
from configs.models.ldap import Ldap
from configs.models.node_pool import EksNodes, ExistingNodes, NodePool, Taint
from configs.models.node_set import NodeSet, VolumeClaim
from configs.models.shapes import machine_of, shape_of
from configs.models.storage import Disk, Mount, NfsServer, Root, RootVersion, Source
from configs.render import accounts, nfs_server, shared_root, slurm, users

POOL_LABEL = "slipway.dev/pool"
"""On every node of an EKS pool, with the pool's name."""
_SLURMD_MIB = 256
"""Memory of a worker pod beside what Slurm gives to jobs: slurmd and its steps, in MiB."""
_CPU_SHARE = 0.9
"""CPU that a worker pod requests of what Slurm hands out; the rest is for what Kubernetes itself runs on the machine."""


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


def munge_args(cluster: Cluster) -> MungeSecretArgs:
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "deletion_protection": cluster.deletion_protection,
        "generation": cluster.keys.munge,
        "keep": "munge" in cluster.keys.keep,
    }


def node_host_key_args(cluster: Cluster) -> NodeHostKeyArgs:
    return {"cluster": cluster.name, "namespace": cluster.namespace, "deletion_protection": cluster.deletion_protection}


def shared_mounts(cluster: Cluster, further: tuple[Mount, ...]) -> list[SharedMountArgs]:
    """The shared root, homes and the further mounts of one kind of pod."""
    storage = cluster.storage
    return [
        _shared_root(cluster),
        shared_mount("home", "/home", storage.home, server=storage.nfs_server),
        # A prefix keeps a user's names and those of a pod's own volumes apart.
        *(shared_mount(f"mount-{mount.name}", mount.mount_path, mount, mount.read_only, storage.nfs_server) for mount in further),
    ]


def _shared_root(cluster: Cluster) -> SharedMountArgs:
    return shared_mount("shared-root", shared_root.SHARED, cluster.storage.shared_root, server=cluster.storage.nfs_server)


def shared_mount(name: str, path: str, source: Source, read_only: bool = False, server: NfsServer | None = None) -> SharedMountArgs:
    """One shared folder, with the fields of its source that are set. Pods mount the cluster's own server as any other NFS."""
    made: SharedMountArgs = {"name": name, "mount_path": path, "read_only": read_only}
    if source.host_path is not None:
        made["host_path"] = source.host_path
    elif source.claim is not None:
        made["claim"] = source.claim
    elif source.nfs is not None:
        made["nfs"] = {"server": source.nfs.server, "path": source.nfs.path, "options": list(source.nfs.options)}
    elif source.nfs_server and server is not None:
        made["nfs"] = {"server": server.cluster_ip, "path": f"/{name}", "options": list(server.options)}
    elif source.storage_class is not None:
        made["storage_class"] = source.storage_class
        made["size"] = source.size or ""
    elif source.disk is not None:
        made["disk"] = claim(source.disk)
    return made


def shared_root_args(cluster: Cluster, pods: PodDefaults, root: Root) -> SharedRootArgs:
    """The versions of the root, and which one is current."""
    versions = shared_root.versions_of(root, pods["image"])
    settings = {"root.conf": shared_root.render(cluster, ROOT_SETTINGS, SLURM_UID)}
    if cluster.login.has_admins:
        settings[shared_root.SUDOERS] = shared_root.render_sudoers(cluster)
    return {
        "pods": pods,
        "volume": _shared_root(cluster),
        "versions": [_root_version(version) for version in versions.values()],
        "current": shared_root.current_of(root, pods["image"]),
        "keep_days": root.keep_days,
        "settings": settings,
    }


def _root_version(version: RootVersion) -> RootVersionArgs:
    made: RootVersionArgs = {"name": version.name}
    if version.tar is not None:
        made["tar"] = {"url": version.tar.url, "sha256": version.tar.sha256}
    elif version.image is not None:
        made["image"] = version.image
    if version.carry_from is not None:
        made["carry_from"] = version.carry_from
    return made


def storage_args(cluster: Cluster, pods: PodDefaults) -> SharedStorageArgs:
    made: SharedStorageArgs = {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "mounts": [
            *shared_mounts(cluster, cluster.storage.mounts),
            *([shared_mount("backup", BACKUP_PATH, cluster.backup.volume)] if cluster.backup else []),
            *([archive] if (archive := archive_mount(cluster)) else []),
        ],
        "deletion_protection": cluster.deletion_protection,
    }
    if cluster.storage.nfs_server is not None:
        made["server"] = nfs_server_args(cluster, pods, cluster.storage.nfs_server)
    return made


def nfs_server_args(cluster: Cluster, pods: PodDefaults, server: NfsServer) -> NfsServerArgs:
    return {
        "pods": pods,
        "cluster_ip": server.cluster_ip,
        "ganesha_conf": nfs_server.render(cluster),
        "folders": [ExportedFolderArgs(name=export.name, mode=export.mode) for export in nfs_server.exports(cluster)],
        "users": object_name(cluster.name, "users"),
        "networks": list(server.networks),
        "storage": claim(Disk(storage_class=server.storage_class, size=server.size)),
        "deletion_protection": cluster.deletion_protection,
    }


def claim(disk: Disk) -> ClaimArgs:
    """A daemon's own disk; without a class, the Kubernetes cluster's default one."""
    made: ClaimArgs = {"size": disk.size}
    if disk.storage_class is not None:
        made["storage_class"] = disk.storage_class
    return made


def identity_volume(cluster: Cluster) -> SharedMountArgs | None:
    """The volume that users come from; None where all are in the config."""
    return _shared_root(cluster) if cluster.login.ldap is not None else None


def identity_args(cluster: Cluster, pods: PodDefaults, said: Ldap) -> IdentityArgs:
    """The directory as the config says it, with its defaults worked out."""
    ldap: LdapArgs = {
        "uris": list(said.uris),
        "start_tls": said.start_tls,
        "user_base_dn": said.user_base_dn or said.base_dn,
        "group_base_dn": said.group_base_dn or said.base_dn,
        "user_filter": said.user_filter,
        "group_filter": said.group_filter,
        "key_attribute": said.key_attribute,
        "refresh_s": said.refresh_s,
        "min_uid": said.min_uid,
        "min_gid": said.min_gid,
        "max_removed_percent": said.max_removed_percent,
    }
    if said.ca_secret is not None:
        ldap["ca_secret"] = said.ca_secret
    if said.bind_dn is not None and said.bind_secret is not None:
        ldap["bind_dn"], ldap["bind_secret"] = said.bind_dn, said.bind_secret
    return {
        "pods": pods,
        "ldap": ldap,
        "volume": _shared_root(cluster),
        "users": object_name(cluster.name, "users"),
        "user_keys": object_name(cluster.name, "user-keys"),
    }


def slurm_files_args(cluster: Cluster) -> SlurmFilesArgs:
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "files": slurm.render(cluster),
        "jwt_generation": cluster.keys.jwt,
        "keep_jwt": "jwt" in cluster.keys.keep,
        "deletion_protection": cluster.deletion_protection,
    }


def control_plane_args(cluster: Cluster, pods: PodDefaults) -> ControlPlaneArgs:
    made: ControlPlaneArgs = {
        "pods": pods,
        "users": object_name(cluster.name, "users"),
        "state": claim(cluster.storage.state),
        "key_spread_s": cluster.keys.spread_s,
        "jwt_generation": cluster.keys.jwt,
        "deletion_protection": cluster.deletion_protection,
    }
    if (identity := identity_volume(cluster)) is not None:
        made["identity"] = identity
    if cluster.backup is not None:
        made["backup"] = backup_args(cluster, pods, cluster.backup)
    return made


def accounting_args(cluster: Cluster, pods: PodDefaults) -> AccountingArgs:
    """slurmdbd with a database of its own or an external one. Where the config declares accounts, also what keeps them in Slurm."""
    made: AccountingArgs = {
        "pods": pods,
        "slurmdbd_conf": slurm.render_slurmdbd(cluster),
        "users": object_name(cluster.name, "users"),
        "jwt_secret": object_name(cluster.name, "jwt"),
        "password_generation": cluster.keys.database,
        "jwt_generation": cluster.keys.jwt,
        "deletion_protection": cluster.deletion_protection,
    }
    if (identity := identity_volume(cluster)) is not None:
        made["identity"] = identity
    if (external := external_database(cluster)) is not None:
        made["external"] = external
    else:
        made["storage"] = claim(cluster.accounting.disk)
    if (archive := archive_mount(cluster)) is not None:
        made["archive"] = archive
    if cluster.backup is not None:
        made["backup"] = backup_args(cluster, pods, cluster.backup)
    if cluster.accounting.is_kept:
        kept: AccountsArgs = {
            "file": accounts.FILE,
            "text": accounts.render(cluster, has_directory=cluster.login.ldap is not None),
            "slurm_config": object_name(cluster.name, "slurm-config"),
        }
        made["accounts"] = kept
    return made


def external_database(cluster: Cluster) -> ExternalDatabaseArgs | None:
    """The database of somebody else, where there is one."""
    said = cluster.accounting.external
    if said is None or not cluster.accounting.enabled:
        return None
    made: ExternalDatabaseArgs = {
        "host": said.host,
        "port": said.port,
        "database": said.database,
        "user": said.user,
        "password_secret": said.password_secret,
        "tls": said.tls,
    }
    if said.ca_secret is not None:
        made["ca_secret"] = said.ca_secret
    return made


def archive_mount(cluster: Cluster) -> SharedMountArgs | None:
    """Where slurmdbd's archives go, if anywhere."""
    archive = cluster.accounting.archive
    return shared_mount("archive", slurm.ARCHIVE, archive.volume) if archive and cluster.accounting.enabled else None


def backup_args(cluster: Cluster, pods: PodDefaults, backup: Backup) -> BackupArgs:
    made: BackupArgs = {
        "pods": pods,
        "volume": shared_mount("backup", BACKUP_PATH, backup.volume),
        "schedule": backup.schedule,
        "keep": backup.keep,
        "state_interval_s": backup.state_interval_s,
        "restore_from": backup.restore_from or "",
        "has_database": cluster.accounting.enabled,
    }
    if (external := external_database(cluster)) is not None:
        made["external"] = external
    return made


def controllers_args(cluster: Cluster, pods: PodDefaults, image: str) -> ControllersArgs:
    return {
        "pods": {**pods, "image": image},
        "jwt_secret": object_name(cluster.name, "jwt"),
    }


def node_set_args(cluster: Cluster, pods: PodDefaults, node_set: NodeSet) -> NodeSetArgs:
    """One node set on its pool. Requests are those of the config, or else nearly all that Slurm gives to jobs."""
    shape = shape_of(cluster, node_set)
    requested = node_set.resources
    retention = node_set.volume_claim_retention
    made: NodeSetArgs = {
        "pods": pods,
        "name": node_set.name,
        "ordinals": node_set.ordinals,
        "pool": worker_pool(cluster.node_pool(node_set.pool)),
        "cpu_request": requested.cpu or f"{math.floor(shape.cpus * 1000 * _CPU_SHARE)}m",
        "memory_request_mib": requested.memory_mib or shape.memory_mib + _SLURMD_MIB,
        "memory_limit_mib": shape.memory_mib + _SLURMD_MIB,
        "gpus": shape.gpu_count,
        "simulated_gpus": node_set.simulated_gpus,
        "users": object_name(cluster.name, "users"),
        "mounts": shared_mounts(cluster, cluster.mounts_of(node_set)),
        "drain_grace_s": node_set.drain_grace_s,
        "job_processes": slurm.job_processes(cluster),
        "update": {"type": node_set.update.type, "max_unavailable": str(node_set.update.max_unavailable)},
        "drain": _drain(node_set),
        "placement": node_set.placement,
        "volume_claims": [_volume_claim(claim) for claim in node_set.volume_claims],
        "claim_retention": {"when_deleted": retention.when_deleted, "when_scaled": retention.when_scaled},
        "max_pods_in_flight": node_set.max_pods_in_flight,
        "resume_timeout_s": cluster.slurm.resume_timeout_s,
    }
    if (identity := identity_volume(cluster)) is not None:
        made["identity"] = identity
    if cluster.storage.root is not None:
        made["root"] = settings_name(cluster.name)
    if cluster.login.ssh_to_nodes:
        made["ssh"] = {"host_keys": node_secret_name(cluster.name), "user_keys": object_name(cluster.name, "user-keys")}
    if node_set.update.reservation is not None:
        made["update"]["reservation"] = node_set.update.reservation
    if node_set.is_elastic:
        made["min"] = node_set.min or 0
        made["max"] = node_set.ordinals
    else:
        made["size"] = node_set.size or 0
    if not cluster.kubernetes.wait_for_drains:
        made["declared_in"] = declared_sets_name(cluster.name)
    return made


def _drain(node_set: NodeSet) -> DrainArgs:
    made: DrainArgs = {"action": node_set.drain.action}
    if node_set.drain.deadline_s is not None:
        made["deadline_s"] = node_set.drain.deadline_s
    return made


def _volume_claim(said: VolumeClaim) -> VolumeClaimArgs:
    made: VolumeClaimArgs = {"name": said.name, "mount_path": said.mount_path, "size": said.size}
    if said.storage_class is not None:
        made["storage_class"] = said.storage_class
    return made


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


def kinds_args(cluster: Cluster) -> KindsArgs:
    """The kind NodeSet, and the RuntimeClasses that the pools name. The GPU Operator makes its own RuntimeClass."""
    names = {pool.runtime_class for pool in cluster.node_pools if pool.runtime_class}
    theirs = {OPERATOR_CLASS} if cluster.gpu_operator.enabled else set[str]()
    return {"cluster": cluster.name, "install_crds": cluster.kubernetes.install_crds, "runtime_classes": sorted(names - theirs)}


def gpu_runtime_args(cluster: Cluster) -> GpuRuntimeArgs:
    """The GPU Operator where it is asked for."""
    operator = cluster.gpu_operator
    made: GpuRuntimeArgs = {"cluster": cluster.name}
    if operator.enabled:
        tainted = [toleration for pool in cluster.node_pools for toleration in worker_pool(pool)["tolerations"]]
        made["operator"] = {
            "version": operator.version,
            "driver": operator.driver,
            "toolkit": operator.toolkit,
            "tolerations": [one for at, one in enumerate(tainted) if one not in tainted[:at]],
        }
    return made


def node_pool_args(cluster: Cluster, pods: PodDefaults, pool: NodePool) -> GpuNodePoolArgs:
    """One pool: the nodes to look for, or those that EKS makes."""
    made: GpuNodePoolArgs = {"pods": pods, "name": pool.name}
    if pool.existing is not None:
        made["existing"] = _existing_nodes(cluster, pool, pool.existing)
    if pool.eks is not None:
        made["eks"] = _eks_nodes(pool, pool.eks)
    return made


def _existing_nodes(cluster: Cluster, pool: NodePool, nodes: ExistingNodes) -> ExistingNodesArgs:
    wanted = [shape_of(cluster, node_set).gpu_count for node_set in cluster.node_sets if node_set.pool == pool.name]
    return {
        "labels": dict(nodes.labels),
        "taints": _taints(nodes.taints),
        "count": nodes.count,
        "gpu_resource": nodes.gpu_resource,
        # As many as one node of a set needs; a machine may hold more.
        "gpus": max(wanted, default=0),
    }


def _eks_nodes(pool: NodePool, eks: EksNodes) -> EksNodesArgs:
    machine = machine_of(pool)
    made: EksNodesArgs = {
        "cluster_name": eks.cluster_name,
        "node_role_arn": eks.node_role_arn,
        "subnet_ids": list(eks.subnet_ids),
        "machine": machine.name,
        "min": eks.min,
        "max": pool.max,
        "desired": eks.min if eks.desired is None else eks.desired,
        "ami_type": eks.ami_type,
        "capacity_type": eks.capacity_type,
        "placement_group": eks.placement_group,
        "efa_cards": list(machine.efa_cards) if eks.efa else [],
        "security_group_ids": list(eks.security_group_ids),
        "disk_gib": eks.disk_gib,
        "labels": {**eks.labels, POOL_LABEL: pool.name},
        "taints": _taints(eks.taints),
    }
    if eks.capacity_reservation_id is not None:
        made["capacity_reservation_id"] = eks.capacity_reservation_id
    return made


def _taints(taints: tuple[Taint, ...]) -> list[TaintArgs]:
    return [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]


def health_checks_args(cluster: Cluster, pods: PodDefaults) -> HealthChecksArgs:
    return {
        "pods": pods,
        "slurm_config": object_name(cluster.name, "slurm-config"),
        "checks": [_health_check(cluster, check) for check in cluster.health_checks],
    }


def _health_check(cluster: Cluster, check: HealthCheck) -> HealthCheckArgs:
    return {
        "name": check.name,
        "check": check.check,
        "schedule": check.schedule,
        "timeout_s": check.timeout_s,
        "max_drained": share_of(check.max_drained, sum(cluster.node_set(name).ordinals for name in check.node_sets)),
        "node_sets": [_checked_nodes(cluster, check, cluster.node_set(name)) for name in check.node_sets],
    }


def share_of(said: int | str, total: int) -> int:
    """A number as it is; a percentage of the total, rounded down, at least one."""
    return said if isinstance(said, int) else max(1, total * int(said.rstrip("%")) // 100)


def _checked_nodes(cluster: Cluster, check: HealthCheck, node_set: NodeSet) -> CheckedNodesArgs:
    """Limits as the user set them, and the facts of the nodes that the program compares with."""
    shape = shape_of(cluster, node_set)
    facts: dict[str, Any] = {}
    if check.check == "disk":
        # A node's own folders: a shared one that fills up is nothing that draining nodes would help.
        facts = {"paths": ["/tmp", SPOOL_PATH]}  # noqa: S108 - a folder to look at
    elif check.check == "memory":
        facts = {"configuredMiB": shape.memory_mib}
    elif check.check == "gpu":
        vendor = shape.gpus.vendor if shape.gpus else "nvidia"
        facts = {"vendor": vendor, "count": shape.gpu_count, "simulated": node_set.simulated_gpus}
    return {
        "name": node_set.name,
        "size": node_set.ordinals,
        "gpus": shape.gpu_count if check.check == "gpu" else 0,
        "settings": {**CHECK_SETTINGS[check.check], **check.settings, **facts},
    }


def login_args(cluster: Cluster, pods: PodDefaults) -> LoginNodesArgs:
    said = cluster.login.service
    service: LoginServiceArgs = {"type": said.type, "annotations": dict(said.annotations), "source_ranges": list(said.source_ranges)}
    if said.node_port is not None:
        service["node_port"] = said.node_port
    made: LoginNodesArgs = {
        "pods": pods,
        "replicas": cluster.login.replicas,
        "service": service,
        "users": object_name(cluster.name, "users"),
        "user_keys": object_name(cluster.name, "user-keys"),
        "mounts": shared_mounts(cluster, cluster.storage.mounts),
        "home_keys": cluster.login.home_keys,
        "has_admins": cluster.login.has_admins,
        "settings": users.render_login(cluster),
        "drain_grace_s": cluster.login.drain_grace_s,
        "deletion_protection": cluster.deletion_protection,
    }
    if (identity := identity_volume(cluster)) is not None:
        made["identity"] = identity
    if cluster.storage.root is not None:
        made["root"] = settings_name(cluster.name)
    if cluster.login.ssh_to_nodes:
        made["node_host_keys"] = node_secret_name(cluster.name)
    return made
