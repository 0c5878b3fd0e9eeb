"""All rules that need more than one value: pure functions from a cluster to faults. One file a topic; this file puts them together."""

from collections.abc import Iterable

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.rules.accounting import check_accounting
from configs.rules.accounts import check_accounts
from configs.rules.backup import check_backup
from configs.rules.claims import check_claims
from configs.rules.health_checks import check_health_checks
from configs.rules.keys import check_keys
from configs.rules.login import check_login
from configs.rules.maintenance import check_maintenance
from configs.rules.monitoring import check_monitoring
from configs.rules.names import Names, check_distinct
from configs.rules.nfs_server import check_nfs_server
from configs.rules.node_pool import check_gpu_operator, check_node_pools
from configs.rules.node_set import check_node_sets
from configs.rules.notifications import check_notifications
from configs.rules.partition import check_partitions
from configs.rules.partition_settings import check_partition_settings
from configs.rules.preemption import check_preemption
from configs.rules.projects import check_projects
from configs.rules.qos import check_qos
from configs.rules.shared_root import check_root
from configs.rules.slurm import check_slurm
from configs.rules.storage import check_storage
from configs.rules.topology import check_topologies
from configs.rules.tres import check_tres
from configs.rules.users import check_users

_THERE_ALREADY = ("default", "kube-system", "kube-public", "kube-node-lease")


def check_cluster(cluster: Cluster, names: Names) -> list[Fault]:
    """Every fault across the parts of a cluster, unordered. `names` are all names that the stack file gives."""
    return [
        *check_namespace(cluster),
        *check_images(cluster),
        *check_node_pools(cluster),
        *check_gpu_operator(cluster),
        *check_node_sets(cluster, names),
        *check_claims(cluster),
        *check_partitions(cluster, names),
        *check_partition_settings(cluster, names),
        *check_topologies(cluster),
        *check_storage(cluster),
        *check_root(cluster),
        *check_nfs_server(cluster),
        *check_users(cluster, names),
        *check_login(cluster),
        *check_accounting(cluster),
        *check_backup(cluster),
        *check_keys(cluster),
        *check_accounts(cluster, names, has_directory=cluster.login.ldap is not None),
        *check_projects(cluster, has_directory=cluster.login.ldap is not None),
        *check_qos(cluster),
        *check_preemption(cluster),
        *check_tres(cluster),
        *check_health_checks(cluster, names),
        *check_slurm(cluster),
        *check_maintenance(cluster),
        *check_notifications(cluster, names),
        *check_monitoring(cluster),
    ]


def check_namespace(cluster: Cluster) -> list[Fault]:
    """Faults of the namespace."""
    if cluster.create_namespace and cluster.namespace in _THERE_ALREADY:
        return [
            Fault(
                "cluster.namespace",
                f'"{cluster.namespace}" exists in every Kubernetes cluster. Take another, or say createNamespace: false.',
            )
        ]
    return []


def check_images(cluster: Cluster) -> list[Fault]:
    """Faults of the images: one for each role, and no Secret named twice."""
    images = cluster.images
    faults = check_distinct("cluster.images.pullSecrets", images.pull_secrets)
    if images.slurm is not None and images.slurm == images.controllers:
        message = f"{quoted(images.controllers)} is the image of the Slurm roles. Give the other that `python -m images push` prints."
        faults.append(Fault("cluster.images.controllers", message, ("cluster.images.slurm",)))
    return faults + _check_root_image(cluster)


def _check_root_image(cluster: Cluster) -> list[Fault]:
    """A user who brings the Slurm image to a registry must bring the root's image too, if a version is filled from it."""
    images, root = cluster.images, cluster.storage.root
    if root is None or images.slurm is None or images.root is not None:
        return []
    if root.versions and all(version.image or version.tar for version in root.versions):
        return []
    message = (
        f"is missing: `images.slurm` is {quoted(images.slurm)}, and the shared root is filled from an image of its own. Give the one that "
        "`python -m images push` prints, or give each of `storage.root.versions` its image."
    )
    return [Fault("cluster.images.root", message, ("cluster.images.slurm", "cluster.storage.root"))]


def without_conclusions(faults: Iterable[Fault], broken: Iterable[Fault]) -> list[Fault]:
    """The faults that do not merely follow from a broken part of the file, by path or by what they depend on."""
    paths = [fault.path for fault in broken]

    def follows(fault: Fault) -> bool:
        is_at_broken = any(_within(fault.path, path) for path in paths)
        return is_at_broken or any(_within(path, source) or _within(source, path) for source in fault.depends for path in paths)

    return [fault for fault in faults if not follows(fault)]


def _within(path: str, part: str) -> bool:
    return path == part or path.startswith((f"{part}.", f"{part}["))
