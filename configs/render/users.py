"""Users and groups as the files that libnss-extrausers reads, and their public keys. Passwords there are none: keys only."""

from configs.models.cluster import Cluster
from names import paths


def render(cluster: Cluster) -> dict[str, str]:
    """File name to text: `passwd`, `group` and `shadow`, in the format of passwd(5), group(5) and shadow(5)."""
    users, groups = cluster.login.users, cluster.login.groups
    private_groups = {user.gid: user.name for user in users if user.gid not in {group.gid for group in groups}}
    members = {group.name: [user.name for user in users if group.name in user.groups] for group in groups}
    lines = {
        "passwd": [f"{user.name}:x:{user.uid}:{user.gid}::{paths.HOMES}/{user.name}:{user.shell}" for user in users],
        "group": [f"{name}:x:{gid}:" for gid, name in private_groups.items()]
        + [f"{group.name}:x:{group.gid}:{','.join(members[group.name])}" for group in groups],
        # `*` is neither a password nor a lock: sshd refuses the keys of a locked account ("!").
        "shadow": [f"{user.name}:*:19000:0:99999:7:::" for user in users],
    }
    return {name: "".join(f"{line}\n" for line in content) for name, content in lines.items()}


def render_keys(cluster: Cluster) -> dict[str, str]:
    """User name to that user's public keys, a line each."""
    return {user.name: "".join(f"{key}\n" for key in user.ssh_keys) for user in cluster.login.users}
