"""Rules of keys of slurm.conf that mean something only together, or that name nodes. Source: slurm.conf(5)."""

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.render.health_checks import slurm_settings
from configs.rules.stated import stated
from names import ports
from slurm.conf import known, number_of, pairs_of
from slurm.hostlists import HostlistError, expand

TWO_MEMORY_LIMITS = "cannot be combined with MaxMemPerNode: Slurm then ignores MaxMemPerCPU. Remove one of the two."
"""The fault of MaxMemPerCPU, of the cluster or of a partition."""
_SLURM_PORTS = (ports.SLURMCTLD, ports.SLURMD, ports.SLURMDBD, ports.SLURMRESTD)


def check_pairs(cluster: Cluster) -> list[Fault]:
    """Faults of settings that contradict each other, or that have no effect alone."""
    settings = stated(cluster)

    def number(key: str, default: int) -> int:
        value = number_of(settings[key].value) if key in settings else default
        return default if value is None else value

    mistakes: list[tuple[str, str]] = []
    ours = slurm_settings(cluster)
    interval = number("HealthCheckInterval", int(ours.get("HealthCheckInterval", 0)))
    timeout = number("HealthCheckTimeout", int(ours.get("HealthCheckTimeout", 60)))
    runs = "HealthCheckProgram" in settings or ours
    if runs and 0 < interval <= timeout:
        key, word = ("HealthCheckInterval", "more") if "HealthCheckInterval" in settings else ("HealthCheckTimeout", "less")
        limit_hint = (
            f"HealthCheckTimeout ({timeout}). Raise it, or lower that one."
            if word == "more"
            else f"HealthCheckInterval ({interval}). Lower it."
        )
        mistakes.append((key, f"{interval if word == 'more' else timeout} is not {word} than {limit_hint}"))
    if ours and "HealthCheckInterval" in settings and not interval:
        mistakes.append(("HealthCheckInterval", "is 0: the health checks with the context interval would never run. Raise it."))
    if "HealthCheckProgram" in settings and not interval:
        mistakes.append(("HealthCheckProgram", "never runs: HealthCheckInterval is 0. Set the seconds between two runs."))
    if "FirstJobId" in settings and number("FirstJobId", 1) > number("MaxJobId", 67_108_863):
        mistakes.append(("FirstJobId", f"{settings['FirstJobId'].value} is more than MaxJobId ({number('MaxJobId', 0)}). Lower it."))
    if "MaxMemPerCPU" in settings and "MaxMemPerNode" in settings:
        mistakes.append(("MaxMemPerCPU", TWO_MEMORY_LIMITS))
    limit, default = number("MaxMemPerCPU", 0), cluster.slurm.default_memory_per_cpu_mib
    if limit and default is not None and default > limit:
        mistakes.append(("MaxMemPerCPU", f"{limit} is less than slurm.defaultMemoryPerCpuMiB ({default}). Raise it, or lower that one."))
    if "SrunPortRange" in settings:
        mistakes += [("SrunPortRange", mistake) for mistake in _port_mistakes(settings["SrunPortRange"].value)]
    if "SuspendExcNodes" in settings:
        mistakes += [("SuspendExcNodes", mistake) for mistake in _node_mistakes(settings["SuspendExcNodes"].value, cluster)]
    for key in ("PropagateResourceLimits", "PropagateResourceLimitsExcept", "HealthCheckNodeState"):
        items = settings[key].value.upper().split(",") if key in settings else []
        alone = {"ALL", "NONE"} if key.startswith("Propagate") else {"START_ONLY", "REBOOT_ONLY"}
        if len(items) > 1 and alone & {*items}:
            only_alone = min(alone & {*items})
            mistakes.append((key, f"contains {only_alone}, which cannot be combined with others. Remove the others or this word."))
    about = ("cluster.nodeSets", "cluster.slurm")
    return [Fault(settings[key].path, message, about) for key, message in mistakes]


def _port_mistakes(text: str) -> list[str]:
    first, last = map(int, text.split("-"))
    if last > 65_535 or first < 1024 or last <= first:
        return [f"{quoted(text)} is not a range of ports. Give two from 1024 to 65535, the lower first, as in 60001-63000."]
    if any(first <= port <= last for port in _SLURM_PORTS):
        return [f"{quoted(text)} holds the ports of Slurm's own daemons ({_SLURM_PORTS[0]} to {_SLURM_PORTS[-1]}). Take others."]
    return []


def _node_mistakes(text: str, cluster: Cluster) -> list[str]:
    """Mistakes in a list of nodes to keep up. A `:4` after the list is how many of them."""
    try:
        names = expand(text.rpartition(":")[0] if ":" in text else text)
    except HostlistError:
        return [f"{quoted(text)} is not a list of nodes such as cpu-[0-3]. Write one."]
    known_nodes = {f"{node_set.name}-{at}" for node_set in cluster.node_sets for at in range(min(node_set.ordinals, 100_000))}
    pairs = [pairs[0] for line in cluster.slurm.raw if (pairs := pairs_of(line))]
    for _, value in (pair for pair in pairs if known(pair[0], ("NodeName",))):
        try:
            known_nodes |= {*expand(value)}
        except HostlistError:
            return []
    missing = [name for name in names if name not in known_nodes]
    if not missing:
        return []
    sets = [f"{node_set.name}-[0-{node_set.ordinals - 1}]" for node_set in cluster.node_sets if node_set.ordinals]
    return [f"no node is called {quoted(missing[0])}. {did_you_mean('', sets)}"]
