"""An NFS server in the cluster, for those without a shared file system: nfs-ganesha in user space, on one disk.

Its address is given, not taken: nodes mount by it, and their resolvers know no name of the cluster. What is exported comes rendered.
"""

from typing import TypedDict

import pulumi

from components.claims import ClaimArgs, claim_args, claim_retention, claim_template
from components.labels import Manifest, labels, metadata, object_name, selector
from components.objects import CLAIMS, config_map, content_name, declare
from components.pods import (
    DAEMON_MEMORY,
    PodDefaults,
    config_volume,
    container,
    empty_volume,
    lost_node_tolerations,
    mount,
    pod_template,
    program_command,
    program_mounts,
    program_volumes,
    pump_command,
    service,
    tcp_probe,
)
from components.users import users_name
from configs.models.cluster import Cluster
from configs.models.nfs_server import NfsServer as NfsServerConfig
from configs.models.storage import Disk
from configs.render import nfs_server
from names import paths, ports, variables
from names.annotations import CONFIG

COMPONENT = "nfs"
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "SETGID", "SETUID")
"""It serves as the requesting user (SETUID, SETGID), files of any owner, and finds them by handle: open_by_handle_at(2) wants
DAC_READ_SEARCH."""


class ExportedFolderArgs(TypedDict):
    """A folder that the server makes where it is missing."""

    name: str
    """Its name on the disk and its path for clients."""
    mode: str
    """Its mode when it is made, in octal."""


class NfsServerArgs(TypedDict):
    """What the NFS server needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    cluster_ip: str
    """Address of its Service, free in the service range."""
    ganesha_conf: str
    """Text of ganesha.conf."""
    folders: list[ExportedFolderArgs]
    """The folders that it exports."""
    users: str
    """Name of the ConfigMap with the cluster's users, whose homes it makes."""
    networks: list[str]
    """Networks of the nodes that mount from it; empty: any."""
    storage: ClaimArgs
    """The disk."""
    deletion_protection: bool
    """True: the server cannot be deleted by a change of the stack, and the disk outlives it."""


def nfs_server_args(cluster: Cluster, pods: PodDefaults, server: NfsServerConfig) -> NfsServerArgs:
    return {
        "pods": pods,
        "cluster_ip": server.cluster_ip,
        "ganesha_conf": nfs_server.render(cluster),
        "folders": [ExportedFolderArgs(name=export.name, mode=export.mode) for export in nfs_server.exports(cluster)],
        "users": users_name(cluster.name),
        "networks": list(server.networks),
        "storage": claim_args(Disk(storage_class=server.storage_class, size=server.size)),
        "deletion_protection": cluster.deletion_protection,
    }


class NfsServer(pulumi.ComponentResource):
    """nfs-ganesha, one pod on one disk. A change of its exports restarts it: its clients wait for seconds and lose nothing."""

    address: pulumi.Output[str]
    """Where nodes mount from."""

    def __init__(self, name: str, args: NfsServerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:NfsServer", name, {}, opts)
        plain = pulumi.ResourceOptions(parent=self)
        needs = [declare(manifest, plain) for manifest in (build_config(args), build_network_policy(args), build_service(args))]
        declare(
            build_server(args),
            pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"], depends_on=needs, ignore_changes=[CLAIMS]),
        )
        self.address = pulumi.Output.from_input(args["cluster_ip"])
        self.register_outputs({"address": self.address})


def build_config(args: NfsServerArgs) -> Manifest:
    """The ConfigMap with ganesha.conf, under a fixed name."""
    cluster = args["pods"]["cluster"]
    about = labels(cluster, COMPONENT)
    return config_map(object_name(cluster, "nfs-config"), args["pods"]["namespace"], about, {"ganesha.conf": args["ganesha_conf"]})


def build_service(args: NfsServerArgs) -> Manifest:
    """The Service at the given address. A node whose connection breaks dials the same one again."""
    return service(args["pods"], COMPONENT, ports.NFS, clusterIP=args["cluster_ip"])


def build_network_policy(args: NfsServerArgs) -> Manifest:
    """In: NFS, from the nodes' networks where they are known. Out: nothing."""
    pods = args["pods"]
    sources: Manifest = {"from": [{"ipBlock": {"cidr": network}} for network in args["networks"]]} if args["networks"] else {}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT)),
        "spec": {
            "podSelector": {"matchLabels": selector(pods["cluster"], COMPONENT)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": ports.NFS, "protocol": "TCP"}], **sources}],
            "egress": [],
        },
    }


def build_server(args: NfsServerArgs) -> Manifest:
    """The StatefulSet: one replica, so the pod's name, by which clients are remembered, is always `<cluster>-nfs-0`."""
    pods = args["pods"]
    cluster, name = pods["cluster"], object_name(pods["cluster"], COMPONENT)
    server = container(
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
        env={variables.FOLDERS: " ".join(f"{folder['name']}:{folder['mode']}" for folder in args["folders"])},
        requests=("100m", "256Mi"),
        limit=DAEMON_MEMORY,
        ports=[{"name": COMPONENT, "containerPort": ports.NFS}],
        securityContext={
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": [*CAPABILITIES]},
            # containerd's own profile gives name_to_handle_at to those with SYS_ADMIN only. Source: its contrib/seccomp/seccomp_default.go.
            "seccompProfile": {"type": "Unconfined"},
        },
        startupProbe=tcp_probe(ports.NFS, periodSeconds=1, failureThreshold=300),
        livenessProbe=tcp_probe(ports.NFS, periodSeconds=10, timeoutSeconds=10, failureThreshold=6),
        readinessProbe=tcp_probe(ports.NFS, periodSeconds=2),
    )
    pod: Manifest = {
        "terminationGracePeriodSeconds": 30,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "containers": [server],
        "volumes": [
            *(config_volume("config", object_name(cluster, "nfs-config")), config_volume("users", args["users"])),
            *(empty_volume("run"), empty_volume("tmp"), *program_volumes(pods, "nfs_server")),
        ],
    }
    spec: Manifest = {
        "replicas": 1,
        "serviceName": name,
        "selector": {"matchLabels": selector(cluster, COMPONENT)},
        # A restart is how changed exports are taken over; the annotation causes the restart.
        "template": pod_template(pods, COMPONENT, pod, annotations={CONFIG: content_name(COMPONENT, {"conf": args["ganesha_conf"]})}),
        "volumeClaimTemplates": [claim_template("data", args["storage"])],
        "persistentVolumeClaimRetentionPolicy": claim_retention(args["deletion_protection"]),
    }
    about = metadata(name, pods["namespace"], labels(cluster, COMPONENT))
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": about, "spec": spec}
