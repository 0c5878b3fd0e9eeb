"""An NFS server in the cluster, for users without a shared file system: nfs-ganesha in user space, on one disk.

The stack file sets the Service's address, as nodes mount from it and cannot resolve the cluster's names. configs/render/nfs_server.py
renders the exports.
"""

import pulumi

from components import network
from components.claims import claim_retention, claim_template
from components.labels import Manifest, labels, object_name
from components.objects import CLAIMS, config_map, content_name, declare
from components.pods import (
    DAEMON_MEMORY,
    PodDefaults,
    config_volume,
    container,
    empty_volume,
    lost_node_tolerations,
    mount,
    program_command,
    program_mounts,
    program_volumes,
    pump_command,
    service,
    tcp_probe,
)
from components.users import users_name
from components.workloads import stateful_set
from configs.models.cluster import Cluster
from configs.models.nfs_server import NfsServer as NfsServerConfig
from configs.render import nfs_server
from names import paths, ports, variables
from names.annotations import CONFIG
from programs.nfs_server.settings import Folder, to_text

COMPONENT = "nfs"
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "SETGID", "SETUID")
"""It serves as the requesting user (SETUID, SETGID), files of any owner, and opens them by handle: open_by_handle_at(2) needs
DAC_READ_SEARCH."""


class NfsServer(pulumi.ComponentResource):
    """nfs-ganesha, one pod on one disk. A change of its exports restarts it: clients wait for seconds and lose nothing."""

    address: pulumi.Output[str]
    """The address that nodes mount from."""

    def __init__(
        self, name: str, cluster: Cluster, pods: PodDefaults, server: NfsServerConfig, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("slipway:index:NfsServer", name, {}, opts)
        plain = pulumi.ResourceOptions(parent=self)
        parts = build_config(cluster), build_network_policy(pods, server), build_service(pods, server)
        needs = [declare(manifest, plain) for manifest in parts]
        declare(
            build_server(cluster, pods, server),
            pulumi.ResourceOptions(parent=self, protect=cluster.deletion_protection, depends_on=needs, ignore_changes=[CLAIMS]),
        )
        self.address = pulumi.Output.from_input(server.cluster_ip)
        self.register_outputs({"address": self.address})


def build_config(cluster: Cluster) -> Manifest:
    """The ConfigMap with ganesha.conf; its name is fixed."""
    files = {"ganesha.conf": nfs_server.render(cluster)}
    return config_map(_config_name(cluster.name), cluster.namespace, labels(cluster.name, COMPONENT), files)


def build_service(pods: PodDefaults, server: NfsServerConfig) -> Manifest:
    """The Service with the address in the stack file, so that a node reconnects to the same address."""
    return service(pods, COMPONENT, ports.NFS, clusterIP=server.cluster_ip)


def build_network_policy(pods: PodDefaults, server: NfsServerConfig) -> Manifest:
    """Ingress of NFS, only from the nodes' networks if they are declared; no egress."""
    sources: Manifest = {"from": [{"ipBlock": {"cidr": cidr}} for cidr in server.networks]} if server.networks else {}
    ingress = [{"ports": [network.port(ports.NFS)], **sources}]
    return network.build_policy(pods["cluster"], pods["namespace"], COMPONENT, ingress, egress=[])


def build_server(cluster: Cluster, pods: PodDefaults, server: NfsServerConfig) -> Manifest:
    """The StatefulSet: one replica, so the pod's name is always `<cluster>-nfs-0`. ganesha stores its clients under that name."""
    ganesha = container(
        pods,
        COMPONENT,
        "",
        [
            *program_mounts("nfs_server"),
            *(mount("config", paths.NFS, read_only=True), mount("users", paths.USERS, read_only=True)),
            *(mount("data", paths.NFS_DATA), mount("run", "/run"), mount("tmp", "/tmp")),  # noqa: S108 - a mount of the pod's own
        ],
        command=pump_command("nfs-ganesha", *program_command("nfs_server")),
        workingDir=paths.PACKAGES,
        env={variables.FOLDERS: to_text(Folder(export.name, export.mode) for export in nfs_server.exports(cluster))},
        requests=("100m", "256Mi"),
        limit=DAEMON_MEMORY,
        ports=[{"name": COMPONENT, "containerPort": ports.NFS}],
        securityContext={
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": [*CAPABILITIES]},
            # containerd's default profile allows name_to_handle_at only with SYS_ADMIN. Source: its contrib/seccomp/seccomp_default.go.
            "seccompProfile": {"type": "Unconfined"},
        },
        startupProbe=tcp_probe(ports.NFS, periodSeconds=1, failureThreshold=300),
        livenessProbe=tcp_probe(ports.NFS, periodSeconds=10, timeoutSeconds=10, failureThreshold=6),
        readinessProbe=tcp_probe(ports.NFS, periodSeconds=2),
    )
    pod: Manifest = {
        "terminationGracePeriodSeconds": 30,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "containers": [ganesha],
        "volumes": [
            *(config_volume("config", _config_name(cluster.name)), config_volume("users", users_name(cluster.name))),
            *(empty_volume("run"), empty_volume("tmp"), *program_volumes(pods, "nfs_server")),
        ],
    }
    return stateful_set(
        pods,
        COMPONENT,
        pod,
        # A restart applies changed exports; the annotation causes the restart.
        {CONFIG: content_name(COMPONENT, {"conf": nfs_server.render(cluster)})},
        volumeClaimTemplates=[claim_template("data", server)],
        persistentVolumeClaimRetentionPolicy=claim_retention(cluster.deletion_protection),
    )


def _config_name(cluster: str) -> str:
    return object_name(cluster, "nfs-config")
