"""Slurm's files and the key that signs its tokens: what slurmctld, slurmrestd and slurmdbd all mount.

They are declared before any of these daemons, because slurmdbd comes before slurmctld, which waits for it at its first start.
"""

from typing import TypedDict

import pulumi

from components.generations import KEY_LENGTH, ignored, marks, newest_key
from components.labels import Manifest, labels, object_name, slurm_config_name
from components.objects import config_map, declare, secret
from configs.models.cluster import Cluster
from configs.render import slurm

_FORMER_PARENT = "slipway:index:SlurmControlPlane"
"""The component that had these objects before."""


class SlurmFilesArgs(TypedDict):
    """What Slurm's files and its JWT key need to know."""

    cluster: str
    """Name of the cluster, prefix of the objects' names."""
    namespace: str
    """Namespace of the objects."""
    files: dict[str, str]
    """Slurm's files by name, slurm.conf among them; workers and login get theirs from slurmctld."""
    jwt_generation: int
    """The JWT key's generation: a higher number makes a new key."""
    keep_jwt: bool
    """True: the Secret keeps the key that it has, whatever the generation. For stacks that rotated keys before Slipway kept them secret."""
    deletion_protection: bool
    """True: neither key nor Secret can be deleted or replaced."""


def slurm_files_args(cluster: Cluster) -> SlurmFilesArgs:
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "files": slurm.render(cluster),
        "jwt_generation": cluster.keys.jwt,
        "keep_jwt": "jwt" in cluster.keys.keep,
        "deletion_protection": cluster.deletion_protection,
    }


class SlurmFiles(pulumi.ComponentResource):
    """The ConfigMap of Slurm's files and the JWT key. A change of the files restarts no daemon."""

    config_name: pulumi.Output[str]
    """Name of the ConfigMap with Slurm's files."""
    jwt_secret: pulumi.Output[str]
    """Name of the Secret whose `jwt_hs256.key` signs tokens."""

    def __init__(self, name: str, args: SlurmFilesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:SlurmFiles", name, {}, opts)
        cluster, namespace, protected = args["cluster"], args["namespace"], args["deletion_protection"]
        former = pulumi.create_urn(object_name(cluster, "control-plane"), _FORMER_PARENT, opts.parent if opts else None)
        moved = [pulumi.Alias(parent=former)]
        secret_name = object_name(cluster, "jwt")
        kept = pulumi.ResourceOptions(parent=self, protect=protected)
        data = {"jwt_hs256.key": newest_key(f"{secret_name}-key", args["jwt_generation"], KEY_LENGTH, kept)}
        ignoring = ignored(args["jwt_generation"], args["keep_jwt"])
        lasting = pulumi.ResourceOptions(parent=self, protect=protected, ignore_changes=ignoring, aliases=moved)
        told = marks(args["jwt_generation"], args["keep_jwt"])
        declare(secret(secret_name, namespace, labels(cluster, "slurmctld"), data, told), lasting)
        config = build_config(args)
        declare(config, pulumi.ResourceOptions(parent=self, aliases=moved))
        self.config_name = pulumi.Output.from_input(config["metadata"]["name"])
        self.jwt_secret = pulumi.Output.from_input(secret_name)
        self.register_outputs({"config_name": self.config_name, "jwt_secret": self.jwt_secret})


def build_config(args: SlurmFilesArgs) -> Manifest:
    """The ConfigMap of Slurm's files, under a fixed name: a change reaches slurmctld's pod, whose sidecar then reconfigures."""
    return config_map(slurm_config_name(args["cluster"]), args["namespace"], labels(args["cluster"], "slurmctld"), args["files"])
