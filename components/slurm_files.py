"""Slurm's files and the key that signs its tokens, which slurmctld, slurmrestd and slurmdbd mount.

They are declared before all these daemons, as slurmdbd comes before slurmctld, which waits for slurmdbd at its first start.
"""

import pulumi

from components.generations import KEY_LENGTH, ignored, marks, newest_key
from components.labels import Manifest, jwt_secret_name, labels, object_name, slurm_config_name
from components.objects import config_map, declare, secret
from configs.models.cluster import Cluster
from configs.render import slurm

_FORMER_PARENT = "slipway:index:SlurmControlPlane"
"""The former component of these objects."""


class SlurmFiles(pulumi.ComponentResource):
    """The ConfigMap of Slurm's files and the JWT key. A change of the files restarts no daemon."""

    config_name: pulumi.Output[str]
    """Name of the ConfigMap with Slurm's files."""
    jwt_secret: pulumi.Output[str]
    """Name of the Secret whose `jwt_hs256.key` signs tokens."""

    def __init__(self, name: str, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:SlurmFiles", name, {}, opts)
        generation, keep, protected = cluster.keys.jwt, "jwt" in cluster.keys.keep, cluster.deletion_protection
        former = pulumi.create_urn(object_name(cluster.name, "control-plane"), _FORMER_PARENT, opts.parent if opts else None)
        moved = [pulumi.Alias(parent=former)]
        secret_name = jwt_secret_name(cluster.name)
        protecting = pulumi.ResourceOptions(parent=self, protect=protected)
        data = {"jwt_hs256.key": newest_key(f"{secret_name}-key", generation, KEY_LENGTH, protecting)}
        lasting = pulumi.ResourceOptions(parent=self, protect=protected, ignore_changes=ignored(generation, keep), aliases=moved)
        about = labels(cluster.name, "slurmctld")
        declare(secret(secret_name, cluster.namespace, about, data, marks(generation, keep)), lasting)
        config = build_config(cluster)
        declare(config, pulumi.ResourceOptions(parent=self, aliases=moved))
        self.config_name = pulumi.Output.from_input(config["metadata"]["name"])
        self.jwt_secret = pulumi.Output.from_input(secret_name)
        self.register_outputs({"config_name": self.config_name, "jwt_secret": self.jwt_secret})


def build_config(cluster: Cluster) -> Manifest:
    """The ConfigMap of Slurm's files; its name is fixed. A change reaches slurmctld's pod, whose sidecar reconfigures Slurm."""
    return config_map(slurm_config_name(cluster.name), cluster.namespace, labels(cluster.name, "slurmctld"), slurm.render(cluster))
