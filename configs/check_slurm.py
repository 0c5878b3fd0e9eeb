"""Rules of what users add to slurm.conf: nothing that Slurm does not know, and nothing that contradicts what Slipway renders."""

import re

from configs.faults import Fault, did_you_mean, quoted, repeats
from configs.models import Cluster
from configs.slurm import DEFAULTS, elastic_sets, hostlist, render_settings
from configs.slurm_keys import GLOBAL_KEYS, LINE_KEYS, NODE_KEYS, PARTITION_KEYS, known, pairs_of, rendered_keys

_TYPED = {
    "AccountingStorageEnforce": "accounting.enforce",
    "JobRequeue": "slurm.jobRequeue",
    "KillWait": "slurm.killWaitS",
    "MaxArraySize": "slurm.maxArraySize",
    "MaxJobCount": "slurm.maxJobCount",
    "MessageTimeout": "slurm.messageTimeoutS",
    "PriorityWeightAge": "slurm.priorityWeights.age",
    "PriorityWeightFairshare": "slurm.priorityWeights.fairshare",
    "PriorityWeightJobSize": "slurm.priorityWeights.jobSize",
    "PriorityWeightPartition": "slurm.priorityWeights.partition",
    "PriorityWeightQOS": "slurm.priorityWeights.qos",
    "ReturnToService": "slurm.returnToService",
    "SchedulerParameters": "slurm.schedulerParameters",
    "ResumeTimeout": "slurm.resumeTimeoutS",
    "SelectTypeParameters": "slurm.selectTypeParameters",
    "SlurmctldTimeout": "slurm.slurmctldTimeoutS",
    "SlurmdTimeout": "slurm.slurmdTimeoutS",
    "SuspendTime": "slurm.suspendTimeS",
    "SuspendTimeout": "slurm.suspendTimeoutS",
    "DefMemPerCPU": "slurm.defaultMemoryPerCpuMiB",
    "DefMemPerNode": "slurm.defaultMemoryPerCpuMiB, or settings of a partition",
}

_SET_BY_LINES = {"NodeName": "nodeSets", "PartitionName": "partitions"}
_EITHER = ("PropagateResourceLimits", "PropagateResourceLimitsExcept")
_SECRETS = ("JobCompPass", "AccountingStoragePass")


def check_slurm(cluster: Cluster) -> list[Fault]:
    """Faults of the slurm part."""
    slurm = cluster.slurm
    base = cluster.model_copy(update={"slurm": slurm.model_copy(update={"settings": {}, "raw": ()})})
    own = {key: value for key, value in rendered_keys(render_settings(base)).items() if known(key, DEFAULTS) is None}
    faults = _check_settings(cluster, own) + _check_raw(cluster, own) + _check_prolog_time(cluster)
    for at, item in enumerate(slurm.scheduler_parameters):
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(=[^\s,#\"\\]+)?", item, re.ASCII) is None:
            message = f"{quoted(item)} is not one item of SchedulerParameters, such as bf_window=4320."
            faults.append(Fault(f"cluster.slurm.schedulerParameters[{at}]", message))
    if slurm.max_array_size > slurm.max_job_count:
        message = f"{slurm.max_array_size} is more than maxJobCount ({slurm.max_job_count}): such an array could never be submitted."
        faults.append(Fault("cluster.slurm.maxArraySize", message, ("cluster.slurm.maxJobCount",)))
    return faults


def _check_settings(cluster: Cluster, own: dict[str, str]) -> list[Fault]:
    given = [*cluster.slurm.settings]
    faults: list[Fault] = []
    limits = {known(key, _EITHER): key for key in given}
    if all(key in limits for key in _EITHER):  # slurmctld would not start. Source: slurm.conf(5)
        faults.append(Fault(f"cluster.slurm.settings.{limits[_EITHER[1]]}", f"works without {_EITHER[0]} only. Leave one of the two out."))
    for key in given:
        path = f"cluster.slurm.settings.{key}"
        if line_key := known(key, LINE_KEYS):
            where = _SET_BY_LINES.get(line_key, "slurm.raw")
            faults.append(Fault(path, f"{line_key} starts a line of its own. Use {where}."))
        elif (name := known(key, GLOBAL_KEYS)) is None:
            faults.append(Fault(path, f"Slurm knows no such key of slurm.conf. {did_you_mean(key, GLOBAL_KEYS, 'See slurm.conf(5).')}"))
        elif name in _SECRETS:
            faults.append(Fault(path, "slurm.conf goes to every node and login pod; a password cannot stand there."))
        elif name in _TYPED:
            faults.append(Fault(path, f"has a key of its own. Use {_TYPED[name]}."))
        elif key.lower() in own:
            faults.append(Fault(path, f"Slipway itself depends on {name}={own[key.lower()]}. It cannot be changed."))
    twice = repeats([key.lower() for key in given])
    return faults + [
        Fault(f"cluster.slurm.settings.{given[at]}", f"is {given[first]} again: Slurm does not tell capitals.") for at, first in twice
    ]


def _check_prolog_time(cluster: Cluster) -> list[Fault]:
    """A limit on prologs that would end the wait for nodes of an elastic set. Slurm takes that for a failure and requeues the job."""
    lines = [(f"cluster.slurm.raw[{at}]", pairs_of(line) or []) for at, line in enumerate(cluster.slurm.raw)]
    given = [(f"cluster.slurm.settings.{key}", key, value) for key, value in cluster.slurm.settings.items()]
    given += [(path, key, value) for path, pairs in lines for key, value in pairs]
    limit = cluster.slurm.resume_timeout_s
    return [
        Fault(
            path, f"{key}={value} would end PrologSlurmctld, which waits for elastic nodes for up to {limit} s (resumeTimeoutS). Raise it."
        )
        for path, key, value in given
        if key.lower() in ("prologtimeout", "prologepilogtimeout") and value.isdecimal() and int(value) <= limit and elastic_sets(cluster)
    ]


def _check_raw(cluster: Cluster, own: dict[str, str]) -> list[Fault]:
    settings = {key.lower(): value for key, value in cluster.slurm.settings.items()}
    rendered = {**{key.lower(): value for key, value in DEFAULTS.items()}, **settings, **own}
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    for at, line in enumerate(cluster.slurm.raw):
        path = f"cluster.slurm.raw[{at}]"
        pairs = pairs_of(line)
        if pairs is None or re.match(r"\s*include\b", line, re.IGNORECASE):
            faults.append(Fault(path, f"Slurm could not read {quoted(line)}. A line is Key=value pairs, or a comment after #."))
        elif line.rstrip().endswith("\\"):
            faults.append(Fault(path, "ends in a backslash, which would draw the next line into this one. Write it as one line."))
        elif pairs:
            first = known(pairs[0][0], LINE_KEYS)
            faults += _check_line(path, first, pairs, cluster) if first else _check_pairs(path, pairs, rendered, seen, at)
    return faults


def _check_pairs(path: str, pairs: list[tuple[str, str]], rendered: dict[str, str], seen: dict[str, int], at: int) -> list[Fault]:
    """Faults of a raw line that sets keys of the whole cluster."""
    faults: list[Fault] = []
    for key, value in pairs:
        name = known(key, GLOBAL_KEYS)
        if name is None:
            faults.append(
                Fault(path, f"Slurm knows no key {quoted(key)} in slurm.conf. {did_you_mean(key, GLOBAL_KEYS, 'See slurm.conf(5).')}")
            )
        elif name in _SECRETS:
            faults.append(Fault(path, f"{name}: slurm.conf goes to every node and login pod; a password cannot stand there."))
        elif (before := rendered.get(key.lower())) is not None:
            where = f"Use {_TYPED[name]}." if name in _TYPED else "Use slurm.settings." if name in DEFAULTS else "Drop the line."
            contradiction = f"contradicts {name}={before}, which is" if before != value else f"repeats {name}={before},"
            faults.append(Fault(path, f"{contradiction} rendered from the rest of this file. {where}"))
        elif name in _TYPED:
            faults.append(Fault(path, f"{name} has a key of its own. Use {_TYPED[name]}."))
        elif seen.setdefault(name, at) != at:
            faults.append(Fault(path, f"sets {name} again, after cluster.slurm.raw[{seen[name]}]. Keep one."))
    return faults


def _check_line(path: str, first: str, pairs: list[tuple[str, str]], cluster: Cluster) -> list[Fault]:
    """Faults of a raw line that adds a node, a partition or the like."""
    faults: list[Fault] = []
    value = pairs[0][1]
    keys = {"NodeName": NODE_KEYS, "PartitionName": PARTITION_KEYS}.get(first)
    for key, _ in pairs[1:]:
        if keys and known(key, keys) is None:
            faults.append(Fault(path, f"Slurm knows no key {quoted(key)} on a line of {first}. {did_you_mean(key, keys)}"))
    if first == "PartitionName" and (value in {partition.name for partition in cluster.partitions} or value.upper() == "DEFAULT"):
        faults.append(Fault(path, f"contradicts the partition {quoted(value)} of partitions. Use its settings there."))
    if first == "NodeName":
        ours = [node_set for node_set in cluster.node_sets if re.match(rf"{re.escape(node_set.name)}-(\d|\[)", value)]
        faults += [Fault(path, f"contradicts {hostlist(each) or each.name}, the nodes of node set {quoted(each.name)}.") for each in ours]
    power = [key for key, _ in pairs if key.lower() in ("suspendtime", "suspendtimeout", "resumetimeout", "powerdownonidle")]
    if first == "PartitionName" and power and elastic_sets(cluster):
        faults.append(
            Fault(path, f"{power[0]} counts for the nodes of elastic sets in this partition, too. Use slurm.suspendTimeS and its like.")
        )
    is_default = any(key.lower() == "default" and text.upper() == "YES" for key, text in pairs)
    if first == "PartitionName" and is_default and any(each.default for each in cluster.partitions):
        faults.append(Fault(path, "would be a second default partition."))
    return faults
