"""Rules of users, groups and admins: names, numbers and keys that are their own, and not the system's."""

from configs.faults import Fault, quoted, repeats
from configs.models.cluster import Cluster
from configs.models.users import User
from configs.rules.names import Names, check_distinct, check_references, check_unique
from slurm.people import ACCOUNTS, LEAST_ID, MOST_ID, RESERVED, TAKEN
from slurm.public_keys import KeyFault, key_fault


def check_users(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of users, groups and admins."""
    return [*_check_groups(cluster), *_check_each_user(cluster, names), *_check_admins(cluster, names)]


def key_mistake(line: str) -> str | None:
    """What is wrong with one public key in OpenSSH's format, or None."""
    match key_fault(line):
        case None:
            return None
        case KeyFault.PRIVATE:
            return f"{KeyFault.PRIVATE.value}: make a new pair. Give the public half, the file that ends in .pub."
        case KeyFault.WEAK:
            return f"{KeyFault.WEAK.value}. Make a new one: ssh-keygen -t ed25519."
        case KeyFault.BROKEN:
            return f"{quoted(line)} is cut short or altered. Copy the whole line of the .pub file."
        case KeyFault.UNKNOWN:
            return f"{quoted(line)} is not a public key. One line of a file such as id_ed25519.pub is wanted; it starts with its type."


def _check_groups(cluster: Cluster) -> list[Fault]:
    path = "cluster.login.groups"
    groups = cluster.login.groups
    private_gids = {user.name: user.gid for user in cluster.login.users}
    faults = check_unique(path, "group", [group.name for group in groups])
    for at, group in enumerate(groups):
        faults += _check_id(f"{path}[{at}].gid", group.gid)
        if group.name in RESERVED:
            faults.append(Fault(f"{path}[{at}].name", f"{quoted(group.name)} is a group of the system. Take another name."))
        elif private_gids.get(group.name, group.gid) != group.gid:
            faults.append(
                Fault(f"{path}[{at}].name", f"{quoted(group.name)} is the own group of the user with that name. Take another name.")
            )
    twice = repeats([group.gid for group in groups])
    return faults + [Fault(f"{path}[{at}].gid", f"{groups[at].gid} is the gid of {path}[{first}] already.") for at, first in twice]


def _check_each_user(cluster: Cluster, names: Names) -> list[Fault]:
    path = "cluster.login.users"
    users = cluster.login.users
    faults = check_unique(path, "user", [user.name for user in users])
    faults += [
        Fault(f"{path}[{at}].uid", f"{users[at].uid} is the uid of {path}[{first}] already. Each user needs its own.")
        for at, first in repeats([user.uid for user in users])
    ]
    shared = {group.gid for group in cluster.login.groups}
    for at, first in repeats([user.gid for user in users]):
        if users[at].gid not in shared:
            message = f"{users[at].gid} is the gid of {path}[{first}] too. A group that users share is declared in login.groups."
            faults.append(Fault(f"{path}[{at}].gid", message, (f"{path}[{at}].uid", f"{path}[{first}].uid", "cluster.login.groups")))
    for at, user in enumerate(users):
        faults += _check_user(f"{path}[{at}]", user, names)
    return faults


def _check_admins(cluster: Cluster, names: Names) -> list[Fault]:
    path = "cluster.login.adminGroups"
    known = names.groups if cluster.login.ldap is None else None  # a directory's groups are known to it alone
    faults = check_references(path, "group of login.groups", cluster.login.admin_groups, known)
    if cluster.storage.root is None:
        message = "wants storage.root: without it, what a session installs is in that pod alone. Add storage.root, or leave this out."
        admin_paths = [path] if cluster.login.admin_groups else []
        admin_paths += [f"cluster.login.users[{at}].admin" for at, user in enumerate(cluster.login.users) if user.admin]
        faults += [Fault(where, message, ("cluster.storage",)) for where in admin_paths]
    return faults


def _check_user(path: str, user: User, names: Names) -> list[Fault]:
    faults = check_references(f"{path}.groups", "group of login.groups", user.groups, names.groups)
    faults += _check_id(f"{path}.uid", user.uid)
    if user.gid != user.uid:
        faults += _check_id(f"{path}.gid", user.gid)
    if user.name in RESERVED:
        faults.append(Fault(f"{path}.name", f"{quoted(user.name)} is a user of the system. Take another name."))
    if not user.ssh_keys and not user.ssh_key_files:
        message = f"{quoted(user.name)} could not log in: there is no password, so give sshKeys or sshKeyFiles."
        faults.append(Fault(path, message, (f"{path}.sshKeys", f"{path}.sshKeyFiles", f"{path}.name")))
    faults += check_distinct(f"{path}.sshKeyFiles", user.ssh_key_files)
    mistakes = [(at, key_mistake(line)) for at, line in enumerate(user.ssh_keys)]
    return faults + [Fault(f"{path}.sshKeys[{at}]", mistake) for at, mistake in mistakes if mistake]


def _check_id(path: str, number: int) -> list[Fault]:
    if number in TAKEN:
        owner = next((name for name, taken in ACCOUNTS.items() if taken == number), "nobody")
        return [
            Fault(
                path, f"{number} is the number of the system's own user {owner}, whose files and rights its owner would have. Take another."
            )
        ]
    if number < LEAST_ID or number > MOST_ID:
        return [Fault(path, f"{number} is not for people: ids below {LEAST_ID} are the system's. Take one from {LEAST_ID} to {MOST_ID}.")]
    return []
