"""What login pods read at each login: the banner, and the limits of each user there."""

from configs.models.cluster import Cluster


def render(cluster: Cluster) -> dict[str, str]:
    """File name to text: `banner`, and `limits` with a `key=value` line for each limit that there is."""
    banner, limits = cluster.login.banner, cluster.login.limits
    values = {"cpus": limits.cpus, "memoryMiB": limits.memory_mib, "tasks": limits.tasks}
    return {
        "banner": f"{banner.rstrip()}\n" if banner.strip() else "",
        "limits": "".join(f"{key}={value}\n" for key, value in values.items() if value is not None),
    }
