"""The whole config of one cluster. Types of single values are in the file of the model that uses them, or in `fields`. Rules across parts
are in `rules`. `load` makes a `Cluster` from a stack file."""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, StrictStr

from configs.models.accounting import Accounting
from configs.models.backup import Backup
from configs.models.ec2 import Ec2
from configs.models.fields import DnsLabel, Flag, Model, dns_label
from configs.models.health_checks import HealthCheck
from configs.models.images import Images
from configs.models.keys import Keys
from configs.models.kubernetes import Kubernetes
from configs.models.login import Login
from configs.models.maintenance import Maintenance
from configs.models.monitoring import Monitoring
from configs.models.node_pool import GpuOperator, LabelKey, NodePool, SystemNodes
from configs.models.node_set import NodeSet
from configs.models.notifications import Notifications
from configs.models.page import Page
from configs.models.partition import Partition
from configs.models.slurm import SlurmSettings
from configs.models.storage import Mount, Storage
from configs.models.topology import Topology

ClusterName = Annotated[StrictStr, AfterValidator(dns_label(20, "ml"))]
"""At most 20 characters: `<cluster>-slurmrestd-<hash>` and longer names must stay under Kubernetes' 63."""


class Cluster(Model):
    """One Slurm cluster: the value of `slipway:cluster` in a stack file."""

    name: ClusterName
    """Prefix of every object (`<name>-slurmctld`) and Slurm's ClusterName."""
    namespace: DnsLabel = "slurm"
    """Kubernetes namespace of everything that Slipway makes, except for what belongs to no namespace."""
    create_namespace: Flag = True
    """False: the namespace exists already and is left as it is."""
    kubernetes: Kubernetes = Kubernetes()
    """Which Kubernetes cluster to deploy to, and how."""
    deletion_protection: Flag = False
    """True: storage, the accounting database and the keys are kept when the stack is destroyed."""
    images: Images = Images()
    """The container images."""
    node_pools: tuple[NodePool, ...] = Field(
        examples=[[{"name": "gpu", "machine": "p5.48xlarge", "max": 8, "existing": {"labels": {"gpu": "h100"}}}]]
    )
    """The machines: one pool for each kind."""
    gpu_operator: GpuOperator = GpuOperator()
    """NVIDIA's GPU Operator, for clusters that do not have it yet."""
    system_nodes: SystemNodes = SystemNodes()
    """Where the pods run that are not workers."""
    node_sets: tuple[NodeSet, ...] = Field(examples=[[{"name": "gpu", "pool": "gpu", "size": 8, "gpus": {"model": "h100", "count": 8}}]])
    """The nodes that Slurm has on the machines."""
    partitions: tuple[Partition, ...]
    """The partitions to which users submit jobs."""
    topologies: tuple[Topology, ...] = Field(default=(), examples=[[{"name": "fabric", "preset": "ec2"}]])
    """Networks by which Slurm places jobs, by labels of the machines. The first counts for partitions that name none. Default: Slurm knows
    of no network."""
    label_features: tuple[LabelKey, ...] = Field(default=(), examples=[["node.kubernetes.io/instance-type"]])
    """Labels of the machines that become features of the nodes on them, for `sbatch --constraint`. The feature is the label's
    value or, where that is "true", the name of the label after its slash."""
    storage: Storage
    """The volumes: at least the shared one and the homes."""
    login: Login = Login()
    """The login pods, and who may log in."""
    accounting: Accounting = Accounting()
    """The accounting database, and the accounts and QOS in it."""
    backup: Backup | None = None
    """Backups of the accounting database and of slurmctld's state. Default: none are made."""
    keys: Keys = Keys()
    """Generations of the cluster's keys: raise one to rotate the key."""
    health_checks: tuple[HealthCheck, ...] = ()
    """Checks that run on idle nodes and drain those that fail."""
    maintenance: Maintenance = Maintenance()
    """Warnings of maintenance for running jobs, and which of these jobs are requeued for it."""
    ec2: Ec2 | None = Field(default=None, examples=[{"region": "eu-west-1"}])
    """EC2's reports on the machines, and their reboot and replacement through it. Default: EC2 is not asked."""
    notifications: Notifications = Notifications()
    """News of jobs and nodes: by mail, or by webhooks in Slack's format."""
    monitoring: Monitoring | None = None
    """Metrics, alerts and dashboards. Default: none."""
    page: Page | None = Field(default=None, examples=[{}])
    """A web page that shows nodes, causes, the queue and the last day. Default: none."""
    slurm: SlurmSettings = SlurmSettings()
    """Settings of Slurm itself."""

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
