"""The munge key of a cluster. Only munged sidecars and workers mount it, in workers for root alone; other daemons see a socket."""

from typing import TypedDict

import pulumi

from components.generations import KEY_LENGTH, ignored, marks, newest_key
from components.labels import labels, object_name
from components.objects import declare, secret
from configs.models.cluster import Cluster


class MungeSecretArgs(TypedDict):
    """What a munge key needs to know."""

    cluster: str
    """Name of the cluster, prefix of the Secret's name."""
    namespace: str
    """Namespace of the Secret."""
    deletion_protection: bool
    """True: neither key nor Secret can be deleted or replaced."""
    generation: int
    """The key's generation: a higher number makes a new key."""
    keep: bool
    """True: the Secret keeps the key that it has, whatever the generation. For stacks that rotated keys before Slipway kept them secret."""


def munge_args(cluster: Cluster) -> MungeSecretArgs:
    return {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "deletion_protection": cluster.deletion_protection,
        "generation": cluster.keys.munge,
        "keep": "munge" in cluster.keys.keep,
    }


class MungeSecret(pulumi.ComponentResource):
    """The munge key that every daemon of one Slurm cluster shares. A new generation reaches each pod's munged in about a minute."""

    secret_name: pulumi.Output[str]
    """Name of the Secret; the key is in `munge.key`."""

    def __init__(self, name: str, args: MungeSecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:MungeSecret", name, {}, opts)
        kept = pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"])
        secret_name = object_name(args["cluster"], "munge")
        data = {"munge.key": newest_key(f"{secret_name}-key", args["generation"], KEY_LENGTH, kept)}
        lasting = pulumi.ResourceOptions(
            parent=self, protect=args["deletion_protection"], ignore_changes=ignored(args["generation"], args["keep"])
        )
        told = marks(args["generation"], args["keep"])
        declare(secret(secret_name, args["namespace"], labels(args["cluster"], "munge"), data, told), lasting)
        self.secret_name = pulumi.Output.from_input(secret_name)
        self.register_outputs({"secret_name": self.secret_name})
