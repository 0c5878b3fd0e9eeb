"""What login pods read: the banner and the limits of each user at each login, and the folders of projects, which they make."""

from configs.models.cluster import Cluster


def render(cluster: Cluster) -> dict[str, str]:
    """File name to text: `banner`, and `limits` with a `key=value` line for each limit. If accounts have folders, `projects` lists them
    with their groups."""
    banner, limits = cluster.login.banner, cluster.login.limits
    values = {"cpus": limits.cpus, "memoryMiB": limits.memory_mib, "tasks": limits.tasks}
    return {
        "banner": f"{banner.rstrip()}\n" if banner.strip() else "",
        "limits": "".join(f"{key}={value}\n" for key, value in values.items() if value is not None),
        **({"projects": "".join(f"{path} {group}\n" for path, group in folders.items())} if (folders := projects(cluster)) else {}),
    }


def projects(cluster: Cluster) -> dict[str, str]:
    """The folders of accounts that have one, each with its group."""
    return {f"{cluster.storage.projects}/{account.name}": account.groups[0] for account in cluster.accounting.accounts if account.folder}
