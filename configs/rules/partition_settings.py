"""Rules of what a partition adds to its line of slurm.conf. Its nodes suffice for the memory and number that its keys name. Accounts, QOS,
groups and partitions exist. Slurm itself accepts most mistakes: no job starts, or not as it is meant. Source: slurm.conf(5).
"""

from collections.abc import Iterable, Mapping

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.partition import Partition
from configs.models.shapes import Shape, known_machine, shape_on
from configs.rules.names import Known, Names
from configs.rules.setting_pairs import TWO_MEMORY_LIMITS
from configs.rules.slurm_types import readable
from configs.rules.slurm_words import PARTITION_VALUES
from slurm.conf import known, number_of, pairs_of

_TYPED = {"AllowAccounts": "allow_accounts", "AllowQos": "allow_qos", "QOS": "qos"}
_DEFAULT_MEMORY = "cluster.slurm.defaultMemoryPerCpuMiB"

Given = Mapping[str, tuple[str, str]]
"""Settings by Slurm's spelling: the user's spelling, and the value."""


def check_partition_settings(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of the partitions' settings whose values can be read."""
    faults = _check_default_memory(cluster)
    for at, partition in enumerate(cluster.partitions):
        path = f"cluster.partitions[{at}]"
        settings = readable(partition.settings, PARTITION_VALUES)
        shapes = shapes_of(cluster, partition)
        about = (f"{path}.nodeSets", "cluster.nodeSets", "cluster.nodePools")
        told = [
            *_memory_mistakes(settings, shapes, cluster),
            *_node_mistakes(settings, sum(node_set.ordinals for node_set in cluster.node_sets if node_set.name in partition.node_sets)),
            *_gpu_mistakes(settings, shapes),
            *_list_mistakes(settings, partition),
            *_select_mistakes(settings, cluster),
        ]
        faults += [Fault(f"{path}.settings.{settings[key][0]}", message, about) for key, message in told]
        faults += _check_names(path, settings, partition, cluster, names)
    return faults


def shapes_of(cluster: Cluster, partition: Partition) -> list[tuple[Shape, int]]:
    """The shapes of a partition's nodes with known machines, each with the MiB kept from jobs."""
    pools = {pool.name: pool for pool in reversed(cluster.node_pools)}
    sets = [node_set for node_set in cluster.node_sets if node_set.name in partition.node_sets and node_set.pool in pools]
    return [
        (shape_on(machine, node_set), node_set.kept_memory_mib) for node_set in sets if (machine := known_machine(pools[node_set.pool]))
    ]


def _check_default_memory(cluster: Cluster) -> list[Fault]:
    """A fault if a job's default memory for one CPU is more than any node of a partition has."""
    default = cluster.slurm.default_memory_per_cpu_mib
    for at, partition in enumerate(cluster.partitions):
        has_own = any(known(key, ("DefMemPerCPU", "DefMemPerNode")) for key in partition.settings)
        most = max((shape.memory_mib - kept_mib for shape, kept_mib in shapes_of(cluster, partition)), default=None)
        if default is not None and most is not None and not has_own and default > most:
            message = f"{default} is more than a node of partition {quoted(partition.name)} has for jobs ({most} MiB). Lower it."
            return [Fault(_DEFAULT_MEMORY, message, (f"cluster.partitions[{at}]", "cluster.nodeSets", "cluster.nodePools"))]
    return []


def _amount(settings: Given, key: str) -> float | None:
    """The number of a setting; None if it is missing, unreadable or 0, which means no limit."""
    if key not in settings:
        return None
    value = settings[key][1]
    return float("inf") if value.upper() in ("INFINITE", "UNLIMITED") else number_of(value) or None


def _memory_mistakes(settings: Given, shapes: Iterable[tuple[Shape, int]], cluster: Cluster) -> list[tuple[str, str]]:
    shapes = list(shapes)
    mistakes: list[tuple[str, str]] = []
    most = max((shape.memory_mib - kept_mib for shape, kept_mib in shapes), default=None)
    for key in ("DefMemPerCPU", "DefMemPerNode"):
        amount = _amount(settings, key)
        if amount is not None and most is not None and amount > most:
            message = f"{settings[key][1]} MiB are more than a node of the partition has for jobs ({most}): none would start. Lower it."
            mistakes.append((key, message))
    if "MaxMemPerCPU" in settings and "MaxMemPerNode" in settings:
        return [*mistakes, ("MaxMemPerCPU", TWO_MEMORY_LIMITS)]
    for unit in ("CPU", "Node"):
        least, limit = _amount(settings, f"DefMemPer{unit}"), _amount(settings, f"MaxMemPer{unit}")
        if unit == "CPU" and least is None and "DefMemPerNode" not in settings and shapes:
            derived = max(1, min((shape.memory_mib - kept_mib) // shape.cpus for shape, kept_mib in shapes))
            least = cluster.slurm.default_memory_per_cpu_mib or derived
        if least is not None and limit is not None and least > limit:
            message = (
                f"{settings[f'MaxMemPer{unit}'][1]} is less than what a job has that asks for none (DefMemPer{unit}={least:.0f}). Raise it "
                f"or say a lower DefMemPer{unit} here."
            )
            mistakes.append((f"MaxMemPer{unit}", message))
    return mistakes


def _node_mistakes(settings: Given, nodes: int) -> list[tuple[str, str]]:
    least, most = _amount(settings, "MinNodes"), _amount(settings, "MaxNodes")
    if "MaxNodes" in settings and number_of(settings["MaxNodes"][1]) == 0:
        return [("MaxNodes", "0 would let no job start. Leave it out for no limit; state: DRAIN takes no new jobs.")]
    if least is not None and most is not None and least > most:
        return [
            ("MinNodes", f"{settings['MinNodes'][1]} is more than MaxNodes ({settings['MaxNodes'][1]}): no job could be both. Lower it.")
        ]
    if least is not None and 0 < nodes < least:
        return [("MinNodes", f"{settings['MinNodes'][1]} is more than the partition's {nodes} nodes: no job could start. Lower it.")]
    return []


def _gpu_mistakes(settings: Given, shapes: Iterable[tuple[Shape, int]]) -> list[tuple[str, str]]:
    shapes = list(shapes)
    with_gpus = [(shape, kept_mib) for shape, kept_mib in shapes if shape.gpu_count]
    mistakes: list[tuple[str, str]] = []
    for key in ("DefCpuPerGPU", "DefMemPerGPU"):
        amount = _amount(settings, key)
        if amount is None or not shapes:
            continue
        if not with_gpus:
            mistakes.append((key, "is for nodes with GPUs, and this partition has none. Leave it out."))
            continue
        most = max(shape.cpus if key == "DefCpuPerGPU" else shape.memory_mib - kept_mib for shape, kept_mib in with_gpus)
        if amount > most:
            mistakes.append((key, f"{settings[key][1]} for one GPU is more than a node of the partition has ({most}). Lower it."))
    return mistakes


def _list_mistakes(settings: Given, partition: Partition) -> list[tuple[str, str]]:
    mistakes: list[tuple[str, str]] = []
    for what in ("Accounts", "Qos"):
        typed = partition.allow_accounts if what == "Accounts" else partition.allow_qos
        if f"Deny{what}" in settings and (f"Allow{what}" in settings or typed):
            message = f"cannot be combined with a list of what is allowed: Slurm then uses only Allow{what}. Remove one."
            mistakes.append((f"Deny{what}", message))
    for key in ("AllowAccounts", "AllowGroups", "AllowQos", "DenyAccounts", "DenyQos"):
        items = settings[key][1].lower().split(",") if key in settings else []
        if len(set(items)) < len(items):
            mistakes.append((key, f"{quoted(settings[key][1])} has a name twice. Keep one of each."))
    return mistakes


def _select_mistakes(settings: Given, cluster: Cluster) -> list[tuple[str, str]]:
    if "SelectTypeParameters" in settings and cluster.slurm.select_type_parameters.startswith("CR_CPU_Memory"):
        return [
            ("SelectTypeParameters", "does nothing beside slurm.selectTypeParameters: CR_CPU_Memory. Leave it out, or change that one.")
        ]
    return []


def _check_names(path: str, settings: Given, partition: Partition, cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of unknown names in settings. If the file lists no accounts or QOS, an administrator keeps them in Slurm."""
    accounting = cluster.accounting
    declared = accounting.model_fields_set
    accounts: Known = None
    if "accounts" in declared and names.accounts is not None:
        accounts = names.accounts | {"root", *([accounting.default_account] if accounting.default_account else [])}
    qos: Known = names.qos | {"normal"} if "qos" in declared and names.qos is not None else None
    groups: Known = None
    if cluster.login.ldap is None and names.groups is not None and names.users is not None:
        groups = names.groups | names.users | {"root"}
    partitions = frozenset(other_partition.name for other_partition in cluster.partitions) | _raw_partitions(cluster)
    tables: Iterable[tuple[str, str, Known, str]] = (
        ("AllowAccounts", "account of accounting.accounts", accounts, "cluster.accounting"),
        ("DenyAccounts", "account of accounting.accounts", accounts, "cluster.accounting"),
        ("AllowQos", "QOS of accounting.qos", qos, "cluster.accounting"),
        ("DenyQos", "QOS of accounting.qos", qos, "cluster.accounting"),
        ("QOS", "QOS of accounting.qos", qos, "cluster.accounting"),
        ("AllowGroups", "group of login.groups", groups, "cluster.login"),
        ("Alternate", "partition", partitions, "cluster.partitions"),
    )
    faults: list[Fault] = []
    for key, kind, allowed, source in tables:
        if key not in settings or (key in _TYPED and getattr(partition, _TYPED[key])):
            continue
        spelled, value = settings[key]
        setting_path = f"{path}.settings.{spelled}"
        if source == "cluster.accounting" and not accounting.enabled:
            faults.append(Fault(setting_path, "needs accounting, which accounting.enabled: false leaves out.", (f"{source}.enabled",)))
            continue
        lowered = source == "cluster.accounting"
        for name in value.lower().split(",") if lowered else value.split(","):
            if allowed is not None and name not in allowed and not (key != "Alternate" and name.upper() == "ALL"):
                faults.append(Fault(setting_path, f"no {kind} is called {quoted(name)}. {did_you_mean(name, allowed)}", (source,)))
        if key == "Alternate" and value == partition.name:
            faults.append(Fault(setting_path, f"{quoted(value)} is this partition itself. Name the partition that is to take its jobs."))
    return faults


def _raw_partitions(cluster: Cluster) -> frozenset[str]:
    first = [pairs[0] for line in cluster.slurm.raw if (pairs := pairs_of(line))]
    return frozenset(value for key, value in first if known(key, ("PartitionName",)))
