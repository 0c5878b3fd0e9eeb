"""sshd's host keys. They are made from random text in Pulumi's state, so users see replicas and replaced pods as the same host."""

import base64

import pulumi
import pulumi_random as random

from components.generations import SEED_LENGTH, ignored, random_text
from components.labels import labels, object_name
from components.objects import declare, encode, secret
from configs.models.cluster import Cluster

_PKCS8_ED25519 = bytes.fromhex("302e020100300506032b657004220420")
"""The bytes before the 32 secret bytes of an Ed25519 key in PKCS#8. Source: RFC 8410, section 7."""


def host_key(seed: bytes) -> str:
    """An Ed25519 private key as PEM from 32 random bytes. In PKCS#8, the seed is the key. Raises ValueError for other lengths."""
    if len(seed) != 32:
        raise ValueError(f"an Ed25519 key is made from 32 bytes, not {len(seed)}")
    body = base64.b64encode(_PKCS8_ED25519 + seed).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"


class NodeHostKey(pulumi.ComponentResource):
    """One host key for all workers of a cluster. Login nodes trust it, so users are never asked whether to trust a node. A new key is a
    new Secret, and reaches a pod when it is recreated."""

    secret_name: pulumi.Output[str]
    """Name of the Secret; the key is in `ssh_host_ed25519_key`."""

    def __init__(self, name: str, cluster: Cluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:NodeHostKey", name, {}, opts)
        protected = cluster.deletion_protection
        secret_name = node_secret_name(cluster.name)
        seed = random_text(f"{secret_name}-seed", SEED_LENGTH, pulumi.ResourceOptions(parent=self, protect=protected))
        lasting = pulumi.ResourceOptions(parent=self, protect=protected, ignore_changes=ignored())
        declare(secret(secret_name, cluster.namespace, labels(cluster.name, "slurmd"), key_data(seed)), lasting)
        self.secret_name = pulumi.Output.from_input(secret_name)
        self.register_outputs({"secret_name": self.secret_name})


def key_data(seed: random.RandomPassword) -> dict[str, pulumi.Output[str]]:
    """The data of a Secret with the host key made from a seed."""
    return {"ssh_host_ed25519_key": pulumi.Output.secret(seed.result).apply(lambda text: encode(host_key(text.encode())))}


def node_secret_name(cluster: str) -> str:
    """The Secret's name, known before the Secret exists."""
    return object_name(cluster, "node-host-keys")
