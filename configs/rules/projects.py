"""Rules of the folders that accounts share: one group for each, with all the account's users, on a volume that every job sees."""

import posixpath

from configs.faults import Fault, quoted
from configs.models.accounts import Account
from configs.models.cluster import Cluster
from configs.models.storage import Mount
from configs.render import shared_root
from names import paths

_PATH = "cluster.accounting.accounts"
_PLACE = "cluster.storage.projects"
_OWN = ("current", "filling", "identity", "jobs", "sources", "versions")
"""What Slipway itself keeps on the shared volume."""


def check_projects(cluster: Cluster, has_directory: bool = False) -> list[Fault]:
    """Faults of the accounts' folders. With `has_directory`, users and groups may be in a directory that is not read here."""
    faults: list[Fault] = []
    for at, account in enumerate(cluster.accounting.accounts):
        if account.folder:
            faults += _check_group(f"{_PATH}[{at}]", account, cluster, has_directory)
    return [*faults, *_check_place(cluster)] if any(account.folder for account in cluster.accounting.accounts) else []


def _check_group(path: str, account: Account, cluster: Cluster, has_directory: bool) -> list[Fault]:
    about = (f"{path}.groups", f"{path}.users", "cluster.login")
    if len(account.groups) != 1:
        actual = f"has the groups {', '.join(account.groups)}" if account.groups else "has no group"
        message = f"a folder belongs to one group, and the account {actual}. Name one in groups, of which all its users are members."
        return [Fault(f"{path}.folder", message, about)]
    group = account.groups[0]
    gid = {login_group.name: login_group.gid for login_group in cluster.login.groups}.get(group)
    inside = {user.name for user in cluster.login.users if group in (*user.groups, user.name) or user.gid == gid}
    known = {user.name for user in cluster.login.users}
    outside = [name for name in account.users if name not in inside and (name in known or not has_directory)]
    if not outside:
        return []
    message = f"{', '.join(outside)} could not enter it, as the folder is of group {quoted(group)}. Add the group to groups of these users."
    return [Fault(f"{path}.folder", message, about)]


def _check_place(cluster: Cluster) -> list[Fault]:
    place = cluster.storage.projects
    above, name = posixpath.split(place)
    if shared_root.is_below_shared(cluster):
        if name in _OWN:
            return [Fault(_PLACE, f"{quoted(place)} is where Slipway keeps files of its own. Take another, such as {paths.PROJECTS}.")]
        return []
    mount = next((mount for mount in cluster.storage.mounts if mount.mount_path in (place, above)), None)
    if mount is None:
        message = f"{quoted(place)} is on no shared volume. Take {paths.PROJECTS}, or a folder directly below one of storage.mounts."
        return [Fault(_PLACE, message, ("cluster.storage.mounts",))]
    return _check_mount(cluster, mount)


def _check_mount(cluster: Cluster, mount: Mount) -> list[Fault]:
    """Faults if login pods cannot make folders there, or some jobs do not see them."""
    name, about = quoted(mount.name), ("cluster.storage.mounts", "cluster.nodeSets")
    if mount.read_only:
        return [Fault(_PLACE, f"mount {name} is read-only. Take another, or leave out readOnly.", about)]
    if mount.nfs_server:
        message = f"root can make no folders on mount {name}: Slipway's NFS server keeps root of its clients out. Take {paths.PROJECTS}."
        return [Fault(_PLACE, message, about)]
    without = [node_set.name for node_set in cluster.node_sets if mount not in cluster.mounts_of(node_set)]
    if without:
        message = f"jobs of node set {', '.join(without)} do not see mount {name}. Add it to mounts there, or take another place."
        return [Fault(_PLACE, message, about)]
    return []
