"""One Slurm cluster from one config. Each part is a component that takes the config and `PodDefaults`.

The whole config is parsed before anything is registered. The Kubernetes cluster itself must exist.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

import configs
from components.accounting import Accounting
from components.backup import Backup
from components.control_plane import SlurmControlPlane
from components.controllers import Controllers
from components.declared_sets import build_declared_sets
from components.deployed import build_deployed
from components.disks import Disks
from components.ec2 import Ec2Program
from components.gpu_runtime import GpuRuntime
from components.guard import Guard
from components.health_checks import HealthChecks
from components.host_keys import NodeHostKey
from components.kinds import Kinds
from components.labels import Manifest, labels, object_name
from components.ldap import Identity
from components.login import LoginNodes
from components.metrics import Metrics
from components.munge import MungeSecret
from components.node_pool import GpuNodePool
from components.node_set import NodeSetComponent
from components.objects import collecting, declare, immutable_config_map
from components.observability import Observability
from components.page import StatusPage
from components.pods import SHARED_PACKAGES, PodDefaults, pod_defaults, service
from components.shared_root import SharedRoot
from components.slurm_files import SlurmFiles
from components.storage import SharedStorage
from components.users import build_users
from configs import images
from configs.cluster_args import SlurmClusterArgs
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.models.ldap import Ldap
from names import ports

_ROOT = Path(configs.__file__).parents[1]
_PROGRAMS = _ROOT / "programs"


class SlurmCluster(pulumi.ComponentResource):
    """A whole Slurm cluster in one namespace. A change of its name or namespace replaces all of it; partitions and users roll nothing."""

    namespace: pulumi.Output[str]
    """Namespace of all its objects."""
    ssh_command: pulumi.Output[str]
    """How a user logs in."""
    slurmctld_address: pulumi.Output[str]
    """Host and port of slurmctld inside the Kubernetes cluster."""
    rest_url: pulumi.Output[str]
    """URL of slurmrestd inside the Kubernetes cluster."""

    def __init__(self, name: str, args: SlurmClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # Paths in the config are relative to the project's folder, where Pulumi starts programs and plugins.
        cluster = load_cluster(args, Path.cwd(), f"SlurmCluster {name}")
        super().__init__("slipway:index:SlurmCluster", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        provider = kubernetes.Provider(cluster.name, **provider_settings(cluster), opts=child)
        adopting = kubernetes.Provider(object_name(cluster.name, "adopting"), **adopting_settings(cluster), opts=child)
        with collecting() as declared:
            control_plane, login = self._declare_parts(cluster, provider, adopting)
        if cluster.kubernetes.guard:
            last = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=[item.resource for item in declared])
            for manifest in build_deployed(cluster.name, cluster.namespace, declared):
                declare(manifest, last)
        self.namespace = pulumi.Output.from_input(cluster.namespace)
        self.ssh_command = login.ssh_command
        self.slurmctld_address, self.rest_url = control_plane.slurmctld_address, control_plane.rest_url
        self.register_outputs(
            {
                "namespace": self.namespace,
                "ssh_command": self.ssh_command,
                "slurmctld_address": self.slurmctld_address,
                "rest_url": self.rest_url,
            }
        )

    def _declare_parts(
        self, cluster: Cluster, provider: pulumi.ProviderResource, adopting: pulumi.ProviderResource
    ) -> tuple[SlurmControlPlane, LoginNodes]:
        lasting = pulumi.ResourceOptions(parent=self, provider=adopting)
        kinds = Kinds(object_name(cluster.name, "kinds"), cluster, lasting)
        child = self._below_namespace(cluster, provider, adopting)
        scripts = build_programs(cluster, "scripts", _PROGRAMS / "start")
        programs = {folder.name: build_programs(cluster, folder.name, folder) for folder in program_folders(cluster)}
        program_names = {name: manifest["metadata"]["name"] for name, manifest in programs.items()}
        pods = pod_defaults(cluster, image_of(cluster, "slurm"), scripts["metadata"]["name"], program_names)
        mounted = [declare(manifest, child) for manifest in (*build_users(cluster), scripts, *programs.values())]
        shared: list[pulumi.Resource] = [
            *mounted,
            SlurmFiles(object_name(cluster.name, "slurm-files"), cluster, child),
            MungeSecret(object_name(cluster.name, "munge"), cluster, child),
            NodeHostKey(object_name(cluster.name, "node-host-key"), cluster, child),
        ]
        storing = adopting if cluster.deletion_protection else provider  # the next stack finds retained objects there
        claiming = pulumi.ResourceOptions(parent=self, provider=adopting, depends_on=mounted)
        shared.append(Disks(object_name(cluster.name, "disks"), cluster, claiming))
        mounting = pulumi.ResourceOptions(parent=self, provider=storing, depends_on=[*mounted, shared[-1]])
        shared.append(SharedStorage(object_name(cluster.name, "storage"), cluster, pods, mounting))
        if cluster.login.ldap is not None:
            self._declare_identity(cluster, cluster.login.ldap, pods, provider, shared)
        if (root := cluster.storage.root) is not None:
            filling = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=[*shared])
            image = image_of(cluster, "root")
            shared.append(SharedRoot(object_name(cluster.name, "shared-root"), cluster, pods, root, image, filling).settings)
        after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=shared)
        control_plane = self._declare_control_plane(cluster, pods, provider, shared)
        GpuRuntime(object_name(cluster.name, "gpu-runtime"), cluster, child)
        pools = {
            pool.name: GpuNodePool(object_name(cluster.name, f"pool-{pool.name}"), cluster, pods, pool, after)
            for pool in cluster.node_pools
        }
        needs = [*shared, kinds, control_plane, declare(service(pods, "slurmd", ports.SLURMD, headless=True), child)]
        self._declare_node_sets(cluster, pods, provider, needs, pools)
        HealthChecks(object_name(cluster.name, "health-checks"), cluster, pods, after)
        if cluster.monitoring is not None:
            Metrics(object_name(cluster.name, "metrics"), cluster, pods, cluster.monitoring, after)
        login = LoginNodes(object_name(cluster.name, "login"), cluster, pods, after)
        if cluster.monitoring is not None:
            observability_pods = with_image(cluster, pods, "observability")
            Observability(object_name(cluster.name, "observability"), cluster, observability_pods, cluster.monitoring, after)
        controllers_pods = with_image(cluster, pods, "controllers")
        if cluster.page is not None:
            StatusPage(object_name(cluster.name, "page"), cluster, controllers_pods, cluster.page, after)
        if cluster.ec2 is not None:
            Ec2Program(object_name(cluster.name, "ec2"), cluster, controllers_pods, cluster.ec2, after)
        if cluster.kubernetes.guard:
            Guard(object_name(cluster.name, "guard"), controllers_pods, after)
        return control_plane, login

    def _below_namespace(
        self, cluster: Cluster, provider: pulumi.ProviderResource, adopting: pulumi.ProviderResource
    ) -> pulumi.ResourceOptions:
        """Options of objects that need the namespace, which is created unless the user has done so. If claims in it outlive the stack, the
        namespace stays too, as its deletion would delete them, and the next stack adopts it."""
        if not cluster.create_namespace:
            return pulumi.ResourceOptions(parent=self, provider=provider)
        stays = keeps_claims(cluster)
        protecting = pulumi.ResourceOptions(
            parent=self, provider=adopting if stays else provider, protect=cluster.deletion_protection, retain_on_delete=stays
        )
        return pulumi.ResourceOptions(parent=self, provider=provider, depends_on=[declare(build_namespace(cluster), protecting)])

    def _declare_control_plane(
        self, cluster: Cluster, pods: PodDefaults, provider: pulumi.ProviderResource, shared: list[pulumi.Resource]
    ) -> SlurmControlPlane:
        """slurmctld after slurmdbd: it waits for slurmdbd at its first start, and an engine that waits for one object at a time would
        hang."""
        needs = list(shared)
        if cluster.backup is not None:
            after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=needs)
            needs = [*needs, Backup(object_name(cluster.name, "backup"), cluster, pods, cluster.backup, after)]
        if cluster.accounting.enabled:
            after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=needs)
            needs = [*needs, Accounting(object_name(cluster.name, "accounting"), cluster, pods, after)]
        after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=needs)
        return SlurmControlPlane(object_name(cluster.name, "control-plane"), cluster, pods, after)

    def _declare_node_sets(
        self,
        cluster: Cluster,
        pods: PodDefaults,
        provider: pulumi.ProviderResource,
        needs: list[pulumi.Resource],
        pools: Mapping[str, pulumi.Resource],
    ) -> None:
        """The controllers and the node sets. The sets come after slurmctld and the controllers, so that they are deleted first: a
        controller drains a deleted set through slurmctld. Between them is the list of the sets, whose deletion waits for the drains."""
        after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=needs)
        controllers_pods = with_image(cluster, pods, "controllers")
        needs = [*needs, Controllers(object_name(cluster.name, "controllers"), cluster, controllers_pods, after)]
        if not cluster.kubernetes.wait_for_drains:
            listed = build_declared_sets(cluster.name, cluster.namespace, [node_set.name for node_set in cluster.node_sets])
            after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=needs)
            needs = [*needs, declare(listed, after)]
        for node_set in cluster.node_sets:
            served = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=[*needs, pools[node_set.pool]])
            NodeSetComponent(object_name(cluster.name, node_set.name), cluster, pods, node_set, served)

    def _declare_identity(
        self, cluster: Cluster, ldap: Ldap, pods: PodDefaults, provider: pulumi.ProviderResource, shared: list[pulumi.Resource]
    ) -> None:
        """Users from LDAP. Nothing waits for them, so an outage of LDAP does not block a deployment."""
        after = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=[*shared])
        Identity(object_name(cluster.name, "identity"), cluster, pods, ldap, after)


def image_of(cluster: Cluster, name: str) -> str:
    """The image in the config, or the default one. `name` is a folder of images/."""
    images_config = cluster.images
    reference = {
        "slurm": images_config.slurm,
        "root": images_config.root,
        "controllers": images_config.controllers,
        "observability": images_config.observability,
    }[name]
    return reference or images.default_reference(name, _ROOT)


def with_image(cluster: Cluster, pods: PodDefaults, name: str) -> PodDefaults:
    """The pod defaults with another image. `name` is a folder of images/."""
    return {**pods, "image": image_of(cluster, name)}


def provider_settings(cluster: Cluster) -> dict[str, Any]:
    """Settings of the provider: only another cluster identifier replaces it, and it updates ConfigMaps and Secrets in place."""
    kubernetes_config = cluster.kubernetes
    return {
        "cluster_identifier": kubernetes_config.cluster_identifier or cluster.name,
        "enable_config_map_mutable": True,
        "enable_secret_mutable": True,
        **({"context": kubernetes_config.context} if kubernetes_config.context else {}),
    }


def adopting_settings(cluster: Cluster) -> dict[str, Any]:
    """Settings of the provider for objects that outlive the stack: it takes over existing objects, with the fields that others have set.

    For a provider without `upsert_existing_objects`, existing objects are an error (pulumi-kubernetes 4.29 and later). Both have the same
    cluster identifier, so that an object can change its provider without replacement.
    """
    return {**provider_settings(cluster), "upsert_existing_objects": True, "enable_patch_force": True}


def keeps_claims(cluster: Cluster) -> bool:
    """True if volume claims in the namespace outlive the stack."""
    own_disks = (node_set for node_set in cluster.node_sets if node_set.volume_claims)
    return cluster.deletion_protection or any(node_set.volume_claim_retention.when_deleted == "Retain" for node_set in own_disks)


def build_namespace(cluster: Cluster) -> Manifest:
    """The namespace. It allows privileged pods, as slurmd creates cgroups. Source: Kubernetes' Pod Security Standards."""
    about = {**labels(cluster.name, "namespace"), "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace, "labels": about}}


def program_folders(cluster: Cluster) -> list[Path]:
    """The folders of the shared Python packages and of the programs that pods of this cluster run."""
    names = {
        "config_sync": True,
        "login": True,
        "munged": True,
        "node_checks": True,
        "running_jobs": True,
        "slurmctld": True,
        "worker": True,
        "backup": cluster.backup is not None,
        "database": cluster.accounting.enabled,
        "account_sync": cluster.accounting.enabled and cluster.accounting.is_kept,
        "ldap_sync": cluster.login.ldap is not None,
        "maintenance": cluster.maintenance.enabled,
        "mail": cluster.notifications.smtp is not None or bool(cluster.notifications.receivers),
        "metrics": cluster.monitoring is not None,
        "nfs_server": cluster.storage.nfs_server is not None,
        "notify": bool(cluster.notifications.receivers),
        "root_changes": cluster.storage.root is not None,
        "root_clean": cluster.storage.root is not None,
        "root_fill": cluster.storage.root is not None,
        "root_packages": cluster.storage.root is not None and bool(cluster.storage.root.packages),
    }
    return [*(_ROOT / package for package in SHARED_PACKAGES), *(_PROGRAMS / name for name, is_run in names.items() if is_run)]


def build_programs(cluster: Cluster, name: str, folder: Path) -> Manifest:
    """A ConfigMap with the programs of a folder. Its name contains a hash of its content, so a change rolls the pods that mount it."""
    files = {file.name: file.read_text() for file in sorted(folder.iterdir()) if file.suffix in (".sh", ".py")}
    part = object_name(cluster.name, name.replace("_", "-"))
    return immutable_config_map(part, cluster.namespace, labels(cluster.name, "scripts"), files)
