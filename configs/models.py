"""The whole config of one cluster, and every part of it under one name. Single values have their types in `fields`; rules across parts
are in `checks`; `load` makes a `Cluster` from a stack file."""

from typing import TypeVar

from configs.access import Group, Login, LoginLimits, LoginService, User
from configs.accounting import Accounting, Archive, Backup, ExternalDatabase, Keys, Purge
from configs.fields import ClusterName, DnsLabel, Flag, Model
from configs.ldap import Ldap
from configs.limits import Account, Limits, Qos, QosLimits, UserInAccount
from configs.nodes import Gpus, NodeSet, Partition, PodResources
from configs.pools import EksNodes, ExistingNodes, GpuOperator, Hardware, HardwareGpus, NodePool, SystemNodes, Taint
from configs.services import CheckKind, HealthCheck, Images, Kubernetes
from configs.storage import Disk, Mount, Nfs, NfsServer, Root, RootVersion, Source, SourceKind, Storage
from configs.tuning import PriorityWeights, SlurmSettings


class Cluster(Model):
    """One Slurm cluster, as the `slipway:cluster` key of a stack file says it."""

    name: ClusterName
    """Prefix of every object (`<name>-slurmctld`) and Slurm's ClusterName."""
    namespace: DnsLabel = "slurm"
    create_namespace: Flag = True
    kubernetes: Kubernetes = Kubernetes()
    deletion_protection: Flag = False
    """Storage, the accounting database and the keys are kept when the stack goes."""
    images: Images = Images()
    node_pools: tuple[NodePool, ...]
    """The machines."""
    gpu_operator: GpuOperator = GpuOperator()
    system_nodes: SystemNodes = SystemNodes()
    node_sets: tuple[NodeSet, ...]
    """What Slurm has on the machines."""
    partitions: tuple[Partition, ...]
    """Where users send jobs."""
    storage: Storage
    """The shared root and the homes, at least."""
    login: Login = Login()
    accounting: Accounting = Accounting()
    backup: Backup | None = None
    keys: Keys = Keys()
    health_checks: tuple[HealthCheck, ...] = ()
    slurm: SlurmSettings = SlurmSettings()

    def node_pool(self, name: str) -> NodePool:
        """The pool of that name. Raises KeyError where there is none."""
        return _named(self.node_pools, name)

    def node_set(self, name: str) -> NodeSet:
        """The node set of that name. Raises KeyError where there is none."""
        return _named(self.node_sets, name)

    def mounts_of(self, node_set: NodeSet) -> tuple[Mount, ...]:
        """The further mounts of one node set's pods."""
        return tuple(mount for mount in self.storage.mounts if node_set.mounts is None or mount.name in node_set.mounts)


_Named = TypeVar("_Named", NodePool, NodeSet)


def _named(parts: tuple[_Named, ...], name: str) -> _Named:
    for part in parts:
        if part.name == name:
            return part
    raise KeyError(name)


__all__ = [
    "Account",
    "Accounting",
    "Archive",
    "Backup",
    "CheckKind",
    "Cluster",
    "Disk",
    "EksNodes",
    "ExistingNodes",
    "ExternalDatabase",
    "GpuOperator",
    "Gpus",
    "Group",
    "Hardware",
    "HardwareGpus",
    "HealthCheck",
    "Images",
    "Keys",
    "Kubernetes",
    "Ldap",
    "Limits",
    "Login",
    "LoginLimits",
    "LoginService",
    "Mount",
    "Nfs",
    "NfsServer",
    "NodePool",
    "NodeSet",
    "Partition",
    "PodResources",
    "PriorityWeights",
    "Purge",
    "Qos",
    "QosLimits",
    "Root",
    "RootVersion",
    "SlurmSettings",
    "Source",
    "SourceKind",
    "Storage",
    "SystemNodes",
    "Taint",
    "User",
    "UserInAccount",
]
