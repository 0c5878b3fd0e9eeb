"""The munge key of a cluster. Only munged sidecars and workers mount it, in workers only for root; other daemons use a socket."""

import pulumi

from components.generations import KEY_LENGTH, ignored, marks, newest_key
from components.labels import labels, object_name
from components.objects import declare, secret
from configs.models.cluster import Cluster


class MungeSecret(pulumi.ComponentResource):
    """The munge key that every daemon of one Slurm cluster shares. A new generation reaches each pod's munged in about a minute."""

    secret_name: pulumi.Output[str]
    """Name of the Secret; the key is in `munge.key`."""

    def __init__(self, name: str, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:MungeSecret", name, {}, opts)
        generation, keep, protected = cluster.keys.munge, "munge" in cluster.keys.keep, cluster.deletion_protection
        secret_name = object_name(cluster.name, "munge")
        protecting = pulumi.ResourceOptions(parent=self, protect=protected)
        data = {"munge.key": newest_key(f"{secret_name}-key", generation, KEY_LENGTH, protecting)}
        lasting = pulumi.ResourceOptions(parent=self, protect=protected, ignore_changes=ignored(generation, keep))
        about = labels(cluster.name, "munge")
        declare(secret(secret_name, cluster.namespace, about, data, marks(generation, keep)), lasting)
        self.secret_name = pulumi.Output.from_input(secret_name)
        self.register_outputs({"secret_name": self.secret_name})
