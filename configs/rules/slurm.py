"""Rules of what users add to slurm.conf: nothing that Slurm does not know, and nothing that contradicts what Slipway renders."""

import re

from configs.faults import Fault, did_you_mean, quoted, repeats
from configs.models.cluster import Cluster
from configs.models.slurm_keys import (
    GLOBAL_KEYS,
    LINE_KEYS,
    NODE_KEYS,
    PARTITION_KEYS,
    RESERVED_ITEMS,
    RESERVED_KEYS,
    ROOT_JOBS,
    allows_root_jobs,
    is_same_value,
    rendered_keys,
)
from configs.render.check_partition import PREEMPTION
from configs.render.health_checks import SETTINGS, slurm_settings
from configs.render.slurm import DEFAULTS, LISTS, REPEATED, elastic_sets, hostlist, render_settings
from configs.rules.files import check_files
from configs.rules.raw_nodes import check_raw_references, node_names
from configs.rules.setting_pairs import check_pairs
from configs.rules.slurm_types import unreadable, unreadable_pairs
from configs.rules.slurm_words import GLOBAL_VALUES, NODE_VALUES, PARTITION_VALUES, SCHEDULER_PARAMETERS
from slurm.conf import known, pairs_of

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
_OPEN = (*DEFAULTS, *SETTINGS, *PREEMPTION)
"""Keys that are rendered unless `slurm.settings` says otherwise."""
_SECRETS = ("JobCompPass", "AccountingStoragePass")


def check_slurm(cluster: Cluster) -> list[Fault]:
    """Faults of the slurm part."""
    slurm = cluster.slurm
    base = cluster.model_copy(update={"slurm": slurm.model_copy(update={"settings": {}, "raw": (), "files": {}})})
    rendered = rendered_keys(render_settings(base))
    own_settings = {key: value for key, value in rendered.items() if known(key, (*_OPEN, *REPEATED)) is None}
    faults = _check_settings(cluster, own_settings) + _check_raw(cluster, own_settings) + _check_prolog_time(cluster) + check_pairs(cluster)
    faults += check_files(cluster)
    faults += _check_scheduler_parameters(slurm.scheduler_parameters)
    if slurm.max_array_size > slurm.max_job_count:
        message = f"{slurm.max_array_size} is more than maxJobCount ({slurm.max_job_count}): such an array could never be submitted."
        faults.append(Fault("cluster.slurm.maxArraySize", message, ("cluster.slurm.maxJobCount",)))
    return faults


def _check_scheduler_parameters(items: tuple[str, ...]) -> list[Fault]:
    """Faults of items that Slurm does not know, and of repeated ones: Slurm takes the first."""
    path = "cluster.slurm.schedulerParameters"
    faults: list[Fault] = []
    for at, item in enumerate(items):
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(=[^\s,#\"\\]+)?", item, re.ASCII) is None:
            faults.append(Fault(f"{path}[{at}]", f"{quoted(item)} is not one item of SchedulerParameters, such as bf_window=4320."))
        elif mistake := SCHEDULER_PARAMETERS.mistake(item):
            faults.append(Fault(f"{path}[{at}]", mistake))
    keys = [item.partition("=")[0].lower() for item in items]
    return faults + [
        Fault(f"{path}[{at}]", f"says {keys[at]} again, after {path}[{first}], which Slurm heeds alone. Keep one.")
        for at, first in repeats(keys)
    ]


def _check_settings(cluster: Cluster, own_settings: dict[str, str]) -> list[Fault]:
    keys = [*cluster.slurm.settings]
    faults: list[Fault] = []
    limits = {known(key, _EITHER): key for key in keys}
    if all(key in limits for key in _EITHER):  # slurmctld would not start. Source: slurm.conf(5)
        faults.append(Fault(f"cluster.slurm.settings.{limits[_EITHER[1]]}", f"works without {_EITHER[0]} only. Leave one of the two out."))
    for key in keys:
        path = f"cluster.slurm.settings.{key}"
        if line_key := known(key, LINE_KEYS):
            where = _SET_BY_LINES.get(line_key, "slurm.raw")
            faults.append(Fault(path, f"{line_key} starts a line of its own. Use {where}."))
        elif (name := known(key, GLOBAL_KEYS)) is None:
            faults.append(Fault(path, f"Slurm knows no such key of slurm.conf. {did_you_mean(key, GLOBAL_KEYS, 'See slurm.conf(5).')}"))
        elif mistake := _undone(name, cluster.slurm.settings[key]):
            faults.append(Fault(path, mistake))
        elif name in _SECRETS:
            faults.append(Fault(path, "slurm.conf goes to every node and login pod; it must not contain a password."))
        elif is_same_value(name, cluster.slurm.settings[key], own_settings):
            continue
        elif name in LISTS:
            faults += [Fault(path, mistake) for mistake in _item_mistakes(name, cluster.slurm.settings[key])]
        elif name in _TYPED:
            faults.append(Fault(path, f"has a key of its own. Use {_TYPED[name]}."))
        elif key.lower() in own_settings and name == "HealthCheckProgram":
            message = "runs the health checks beside jobs. Take it out, or leave cluster.healthChecks at the context job."
            faults.append(Fault(path, message, ("cluster.healthChecks",)))
        elif key.lower() in own_settings:
            faults.append(Fault(path, f"Slipway itself depends on {name}={own_settings[key.lower()]}. It cannot be changed."))
        elif why := unreadable(name, cluster.slurm.settings[key], GLOBAL_VALUES):
            faults.append(Fault(path, why))
    twice = repeats([key.lower() for key in keys])
    return faults + [
        Fault(f"cluster.slurm.settings.{keys[at]}", f"is {keys[first]} again: Slurm's keys are case-insensitive.") for at, first in twice
    ]


def _check_prolog_time(cluster: Cluster) -> list[Fault]:
    """Faults of limits on prologs that would end the wait for elastic nodes: Slurm takes that for a failure and requeues the job."""
    lines = [(f"cluster.slurm.raw[{at}]", pairs_of(line) or []) for at, line in enumerate(cluster.slurm.raw)]
    settings = [(f"cluster.slurm.settings.{key}", key, value) for key, value in cluster.slurm.settings.items()]
    settings += [(path, key, value) for path, pairs in lines for key, value in pairs]
    limit = cluster.slurm.resume_timeout_s
    return [
        Fault(
            path, f"{key}={value} would end PrologSlurmctld, which waits for elastic nodes for up to {limit} s (resumeTimeoutS). Raise it."
        )
        for path, key, value in settings
        if key.lower() in ("prologtimeout", "prologepilogtimeout") and value.isdecimal() and int(value) <= limit and elastic_sets(cluster)
    ]


def _check_raw(cluster: Cluster, own_settings: dict[str, str]) -> list[Fault]:
    settings = {key.lower(): value for key, value in cluster.slurm.settings.items()}
    rendered = {**{key.lower(): value for key, value in {**DEFAULTS, **slurm_settings(cluster)}.items()}, **settings, **own_settings}
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    lines: dict[tuple[str, str], int] = {}
    for at, line in enumerate(cluster.slurm.raw):
        path = f"cluster.slurm.raw[{at}]"
        pairs = pairs_of(line)
        if pairs is None or re.match(r"\s*include\b", line, re.IGNORECASE):
            more = " A backslash has a meaning of its own there." if "\\" in line else ""
            faults.append(Fault(path, f"Slurm could not read {quoted(line)}. A line is Key=value pairs, or a comment after #.{more}"))
        elif pairs and (first := known(pairs[0][0], LINE_KEYS)):
            faults += _check_line(path, first, pairs, cluster) or check_raw_references(path, first, pairs, cluster)
            names = [(first, pairs[0][1])] if first != "NodeName" else [(first, name) for name in node_names(pairs[0][1]) or ()]
            if twice := next((name for name in names if lines.setdefault(name, at) != at), None):
                faults.append(Fault(path, f"{twice[0]}={twice[1]} again, after cluster.slurm.raw[{lines[twice]}]. Keep one."))
        elif len(pairs) > 1:
            faults.append(Fault(path, "Slurm reads one key a line here, and ends with an error at the second. Write a line for each."))
        elif pairs:
            faults += _check_pair(path, *pairs[0], rendered, seen, at)
    return faults


def _item_mistakes(name: str, value: str) -> list[str]:
    """Why a user may not add these items to a list that Slipway renders."""
    reasons = RESERVED_ITEMS.get(name, {})
    keys = [item.partition("=")[0] for item in value.split(",")]
    refused = [f"{word} is not possible here: {reasons[item]}. Leave it out." for word in keys if (item := known(word, reasons))]
    if refused:
        return refused
    why = unreadable(name, value, GLOBAL_VALUES)
    return [why] if why else []


def _undone(name: str, value: str) -> str | None:
    """Why a key may not be set at all, or not to that value."""
    if name in RESERVED_KEYS:
        return f"Slipway itself depends on {name} as it is: {RESERVED_KEYS[name]}. Leave it out."
    if allows_root_jobs(name, value):
        return f"{name}={value} would let root of a login session submit jobs, and root in a job is root on the machine. Leave it out."
    return None


def _check_pair(path: str, key: str, value: str, rendered: dict[str, str], seen: dict[str, int], at: int) -> list[Fault]:
    """Faults of a raw line that sets a cluster-wide key."""
    name = known(key, GLOBAL_KEYS)
    if name is None:
        return [Fault(path, f"Slurm knows no key {quoted(key)} in slurm.conf. {did_you_mean(key, GLOBAL_KEYS, 'See slurm.conf(5).')}")]
    if mistake := _undone(name, value):
        return [Fault(path, mistake)]
    if name in _SECRETS:
        return [Fault(path, f"{name}: slurm.conf goes to every node and login pod; it must not contain a password.")]
    if is_same_value(key, value, rendered):
        return []
    if (before := rendered.get(key.lower())) is not None:
        where = f"Use {_TYPED[name]}." if name in _TYPED else "Use slurm.settings." if name in (*_OPEN, *LISTS) else "Drop the line."
        return [Fault(path, f"contradicts {name}={before}, which is rendered from the rest of this file. {where}")]
    if name in _TYPED:
        return [Fault(path, f"{name} has a key of its own. Use {_TYPED[name]}.")]
    if seen.setdefault(name, at) != at:
        return [Fault(path, f"sets {name} again, after cluster.slurm.raw[{seen[name]}]. Keep one.")]
    why = unreadable(name, value, GLOBAL_VALUES)
    return [Fault(path, why)] if why else []


_NAMING = ("NodeName", "NodeHostname", "NodeAddr", "BcastAddr", "NodeSet", "DownNodes")
"""Keys of raw lines whose value names nodes, or could be taken for a node."""


def _check_naming(path: str, pairs: list[tuple[str, str]], cluster: Cluster) -> list[Fault]:
    """Faults of nodes that a raw line declares: names that belong to node sets, and texts that are not a list of nodes."""
    faults: list[Fault] = []
    taken = {partition.name.lower() for partition in cluster.partitions}
    for key, value in pairs:
        name = known(key, _NAMING)
        if name is None:
            continue
        names = node_names(value)
        if names is None:
            faults.append(
                Fault(path, f"{name}={quoted(value)} is not a list of nodes such as old-[1-3,7],spare. Give one name or range a line.")
            )
            continue
        # A host name is case-insensitive, and a set may grow: so all that its nodes could ever be called is its own.
        ours = [
            node_set
            for node_set in cluster.node_sets
            if any(re.fullmatch(rf"{re.escape(node_set.name)}-\d+", host.lower()) for host in names)
        ]
        faults += [
            Fault(path, f"contradicts {hostlist(node_set) or node_set.name}, the nodes of node set {quoted(node_set.name)}.")
            for node_set in ours
        ]
        if name == "NodeSet" and any(host.lower() in {*taken, "all", "default"} for host in names):
            faults.append(Fault(path, f"{quoted(value)} has a meaning already, which partitions would lose. Take another name."))
        if name == "DownNodes" and any(host.lower() in ("all", "default") for host in names):
            faults.append(Fault(path, f"{name}={value} would take down the nodes of node sets too. Name the nodes that are meant."))
    return faults


def _check_line(path: str, first: str, pairs: list[tuple[str, str]], cluster: Cluster) -> list[Fault]:
    """Faults of a raw line that adds a node, a partition or similar."""
    faults: list[Fault] = []
    value = pairs[0][1]
    keys = {"NodeName": NODE_KEYS, "PartitionName": PARTITION_KEYS}.get(first)
    for key, text in pairs[1:]:
        if keys and known(key, keys) is None:
            faults.append(Fault(path, f"Slurm knows no key {quoted(key)} on a line of {first}. {did_you_mean(key, keys)}"))
        elif allows_root_jobs(key, text):
            faults.append(Fault(path, str(_undone(ROOT_JOBS, text))))
    types = {"NodeName": NODE_VALUES, "PartitionName": PARTITION_VALUES}.get(first, {})
    faults += [Fault(path, why) for why in unreadable_pairs(pairs[1:], types)]
    if first == "PartitionName" and (value in {partition.name for partition in cluster.partitions} or value.upper() == "DEFAULT"):
        faults.append(Fault(path, f"contradicts the partition {quoted(value)} of partitions. Use its settings there."))
    faults += _check_naming(path, pairs, cluster)
    power = [key for key, _ in pairs if key.lower() in ("suspendtime", "suspendtimeout", "resumetimeout", "powerdownonidle")]
    if first == "PartitionName" and power and elastic_sets(cluster):
        faults.append(
            Fault(path, f"{power[0]} counts for the nodes of elastic sets in this partition, too. Use slurm.suspendTimeS and its like.")
        )
    is_default = any(key.lower() == "default" and text.upper() == "YES" for key, text in pairs)
    if first == "PartitionName" and is_default and any(partition.default for partition in cluster.partitions):
        faults.append(Fault(path, "would be a second default partition."))
    return faults
