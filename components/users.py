"""The cluster's users in pods: passwd, group and shadow, and the public keys for sshd.

They are in two ConfigMaps that change in place, or, from LDAP, in a folder of the shared volume that `ldap` writes.
"""

from components.labels import Manifest, labels, object_name
from components.objects import config_map
from components.pods import config_volume, mount
from components.shared_mounts import build_volume, root_mount
from configs.models.cluster import Cluster
from configs.render import users
from names import paths

FOLDER = "identity"
"""Folder of the shared volume with the users from LDAP."""
KEYS_PATH = "/etc/slipway/keys"
"""The folder with one file of public keys for each user, for sshd."""


def users_name(cluster: str) -> str:
    """The ConfigMap with passwd, group and shadow."""
    return object_name(cluster, "users")


def user_keys_name(cluster: str) -> str:
    """The ConfigMap with each user's public keys, under the user's name."""
    return object_name(cluster, "user-keys")


def build_users(cluster: Cluster) -> list[Manifest]:
    """The ConfigMaps of users and of their keys. They change in place and roll no pod."""
    about = labels(cluster.name, "users")
    return [
        config_map(users_name(cluster.name), cluster.namespace, about, users.render(cluster)),
        config_map(user_keys_name(cluster.name), cluster.namespace, about, users.render_keys(cluster)),
    ]


def users_mount(cluster: Cluster) -> Manifest:
    """The mount of users and groups: the ConfigMap's files, or the folder on the shared volume."""
    if cluster.login.ldap is None:
        return mount("users", paths.USERS, read_only=True)
    return {**mount(root_mount(cluster).name, paths.USERS, read_only=True), "subPath": FOLDER}


def keys_mount(cluster: Cluster) -> Manifest:
    """The mount of the users' keys, for sshd."""
    if cluster.login.ldap is None:
        return mount("user-keys", KEYS_PATH, read_only=True)
    return {**mount(root_mount(cluster).name, KEYS_PATH, read_only=True), "subPath": f"{FOLDER}/keys"}


def users_volume(cluster: Cluster) -> Manifest:
    """The volume of `users_mount`, for a pod without other shared volumes.

    A claim is read-only as a whole: else a pod's fsGroup would change the owner of all files on some kinds of volume. Source: Kubernetes'
    CSI client, which skips read-only volumes.
    """
    if cluster.login.ldap is None:
        return config_volume("users", users_name(cluster.name))
    volume = build_volume(cluster.name, root_mount(cluster))
    if "persistentVolumeClaim" in volume:
        volume["persistentVolumeClaim"]["readOnly"] = True
    return volume
