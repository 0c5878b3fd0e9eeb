"""Rules of health checks: that they can run where they should, when they should, with limits that they know."""

from collections.abc import Mapping

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, looks_at, platform_of
from configs.rules.gpu_checks import check_gpu_checks
from configs.rules.names import Names, check_distinct, check_references, check_unique
from configs.rules.schedules import schedule_mistake
from programs.node_checks.kinds import KINDS
from slurm.check_results import LAUNCH

_POSITIVE = {"messageKiB": "1024", "messageMiB": "1024", "rounds": "1", "arrayMiB": "64", "sizeMiB": "64", "seconds": "the default"}


def check_health_checks(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of the health checks."""
    faults = check_unique("cluster.healthChecks", "health check", [check.name for check in cluster.health_checks])
    for at, check in enumerate(cluster.health_checks):
        if check.name == LAUNCH:
            message = f"{quoted(LAUNCH)} is the check that every cluster has: whether a node can start jobs. Choose another name."
            faults.append(Fault(f"cluster.healthChecks[{at}].name", message))
        faults += _check_health_check(f"cluster.healthChecks[{at}]", check, cluster, names)
        faults += _check_job(f"cluster.healthChecks[{at}]", check, cluster)
    return faults


def _check_job(path: str, check: HealthCheck, cluster: Cluster) -> list[Fault]:
    """Faults of settings that only checks run as jobs can have."""
    faults: list[Fault] = []
    about = (f"{path}.check",)
    possible_per = KINDS[check.check].per
    if check.per is not None and possible_per == ("node",):
        faults.append(Fault(f"{path}.per", f"the {check.check} check looks at each node by itself. Leave it out.", about))
    elif check.per is not None and check.per not in possible_per:
        possible = ", ".join(possible_per)
        faults.append(Fault(f"{path}.per", f"the {check.check} check does not run per {check.per}. It can run per: {possible}.", about))
    if check.folders and check.check != "storage":
        faults.append(Fault(f"{path}.folders", f'the {check.check} check has no folders. Take them out, or set "check: storage".', about))
    if check.per == "set" and check.check == "mpi" and not check.settings.get("minBandwidthMBs"):
        message = "is missing: a test of all nodes at once has nothing to compare with. Give the least bus bandwidth of the all-reduce."
        faults.append(Fault(f"{path}.settings.minBandwidthMBs", message, (f"{path}.per",)))
    for key in _POSITIVE.keys() & check.settings.keys():
        if not check.settings[key]:
            faults.append(Fault(f"{path}.settings.{key}", f"0 would test nothing. Leave it out for {_POSITIVE[key]}."))
    if "job" not in check.contexts:
        for key, is_given in (("after", bool(check.after)), ("budgetNodeMinutes", check.budget_node_minutes is not None)):
            if is_given:
                message = "is for the context job alone, which contexts does not name. Add that, or leave this out."
                faults.append(Fault(f"{path}.{key}", message, (f"{path}.contexts",)))
    if check.budget_node_minutes is not None and not cluster.accounting.enabled:
        message = "needs accounting, which counts the node minutes. Say accounting.enabled: true, or leave this out."
        faults.append(Fault(f"{path}.budgetNodeMinutes", message, ("cluster.accounting",)))
    return faults + _check_order(path, check, cluster)


def _check_order(path: str, check: HealthCheck, cluster: Cluster) -> list[Fault]:
    """Faults of `after`: unknown checks, checks of other node sets, and circles."""
    checks = {other_check.name: other_check for other_check in cluster.health_checks}
    faults = check_references(f"{path}.after", "health check", check.after, frozenset(checks))
    for at, name in enumerate(check.after):
        missing = [
            node_set.name
            for node_set in cluster.node_sets
            if name in checks and looks_at(check, node_set) and not looks_at(checks[name], node_set)
        ]
        if missing:
            message = f"the check {quoted(name)} does not look at the node set {quoted(missing[0])}, where this one would never run."
            faults.append(Fault(f"{path}.after[{at}]", message, (f"{path}.nodeSets",)))
        if name in checks and check.name in _before(name, checks):
            faults.append(Fault(f"{path}.after[{at}]", f"{quoted(name)} comes after {quoted(check.name)} in turn: neither would ever run."))
    return faults


def _before(name: str, checks: Mapping[str, HealthCheck]) -> set[str]:
    """The check, and all checks that come before it."""
    earlier: set[str] = set()
    waiting = [name]
    while waiting:
        if (waiting_name := waiting.pop()) in checks and waiting_name not in earlier:
            earlier.add(waiting_name)
            waiting += checks[waiting_name].after
    return earlier


def _check_health_check(path: str, check: HealthCheck, cluster: Cluster, names: Names) -> list[Fault]:
    kind = KINDS[check.check]
    faults = check_references(f"{path}.nodeSets", "node set", check.node_sets, names.node_sets)
    if not check.node_sets:
        faults.append(Fault(f"{path}.nodeSets", "is empty: the check would look at nothing."))
    faults += _check_contexts(path, check)
    faults += _check_nodes(path, check, cluster)
    faults += _check_wish(path, check)
    if check.schedule is not None and (mistake := schedule_mistake(check.schedule)):
        faults.append(Fault(f"{path}.schedule", mistake))
    faults += check_gpu_checks(path, check, cluster)
    if check.check == "command" and not check.command:
        faults.append(
            Fault(f"{path}.command", 'is missing: with "check: command", give the command as a list of words.', (f"{path}.check",))
        )
    if not kind.takes_command and check.command:
        message = f'the {check.check} check runs no command. Take it out, or set "check: command".'
        faults.append(Fault(f"{path}.command", message, (f"{path}.check",)))
    if check.check != "gpu" and check.other_drivers is not None:
        message = f'the {check.check} check reads no driver. Take it out, or set "check: gpu".'
        faults.append(Fault(f"{path}.otherDrivers", message, (f"{path}.check",)))
    faults += _check_log(path, check)
    limits, waits, around = kind.limits, kind.waits, kind.around_s
    takes = check.settings.get(waits, limits.get(waits, 0))
    if waits and takes + around >= check.timeout_s:
        beside = f" and the {around} s beside" if around else ""
        message = f"{check.timeout_s} is not more than {waits} ({takes}){beside}: the check could never end. Raise it."
        faults.append(Fault(f"{path}.timeoutS", message, (f"{path}.settings.{waits}",)))
    for key, value in check.settings.items():
        if key not in limits:
            message = f"the {check.check} check has no such limit. {did_you_mean(key, limits)}"
            faults.append(Fault(f"{path}.settings.{key}", message, (f"{path}.check",)))
        elif key.endswith("Percent") and value > 100:
            faults.append(Fault(f"{path}.settings.{key}", f"{value} is more than 100 percent."))
        elif key.endswith("Percent") and value == 100 and key != "minShareOfMedianPercent":
            faults.append(Fault(f"{path}.settings.{key}", "100 would drain every node: something is always in use. Lower it."))
    return faults


def _check_log(path: str, check: HealthCheck) -> list[Fault]:
    """Faults of settings that only the check of the kernel's log can have."""
    if check.check != "kernel":
        kernel_keys = {"xids": check.xids, "ignoredXids": check.ignored_xids, "patterns": check.patterns}
        message = f'the {check.check} check does not read the kernel\'s log. Take it out, or set "check: kernel".'
        return [Fault(f"{path}.{key}", message, (f"{path}.check",)) for key, value in kernel_keys.items() if value]
    return [
        Fault(f"{path}.ignoredXids[{at}]", f"{number} is in xids, too, which counts it. Take it out of one of them.", (f"{path}.xids",))
        for at, number in enumerate(check.ignored_xids)
        if number in check.xids
    ]


def _check_nodes(path: str, check: HealthCheck, cluster: Cluster) -> list[Fault]:
    faults = check_distinct(f"{path}.nodeStates", check.node_states) + check_distinct(f"{path}.platforms", check.platforms)
    states = {*check.node_states}
    if not states:
        faults.append(Fault(f"{path}.nodeStates", "is empty: the check would look at nothing. Leave it out for nodes in both states."))
    elif len(states) == 1 and "interval" not in check.contexts:
        message = "is for the context interval alone, which contexts does not name. Add that, or leave this out."
        faults.append(Fault(f"{path}.nodeStates", message, (f"{path}.contexts",)))
    elif states == {"allocated"} and "job" not in check.contexts and check.wish != "none":
        message = (
            "names allocated alone, and a node that is drained gets no job: nothing would ever look at it again. Add idle, or the context "
            "job, or say wish: none."
        )
        faults.append(Fault(f"{path}.nodeStates", message, (f"{path}.contexts", f"{path}.wish")))
    known = [node_set for node_set in cluster.node_sets if node_set.name in check.node_sets]
    if known and not any(looks_at(check, node_set) for node_set in known):
        have = ", ".join(sorted({platform_of(node_set) for node_set in known}))
        message = f"fits none of the check's node sets, so it would look at nothing. They have: {have}."
        faults.append(Fault(f"{path}.platforms", message, (f"{path}.nodeSets",)))
    return faults


def _check_wish(path: str, check: HealthCheck) -> list[Fault]:
    if check.cause == "maintenance" and check.wish in ("reboot", "replace"):
        message = f"{check.wish} is for faults: maintenance is done by others. Say drain or none, or another cause."
        return [Fault(f"{path}.wish", message, (f"{path}.cause",))]
    if check.other_drivers == "drain" and check.wish == "none":
        message = "drain contradicts wish: none, by which the check drains no node. Take one of them out."
        return [Fault(f"{path}.otherDrivers", message, (f"{path}.wish",))]
    return []


def _check_contexts(path: str, check: HealthCheck) -> list[Fault]:
    faults: list[Fault] = []
    possible = KINDS[check.check].contexts
    for at, context in enumerate(check.contexts):
        if context not in possible:
            message = f"the {check.check} check does not run in the context {context}. Take it out; it can run as: {', '.join(possible)}."
            faults.append(Fault(f"{path}.contexts[{at}]", message, (f"{path}.check",)))
        elif context in check.contexts[:at]:
            faults.append(Fault(f"{path}.contexts[{at}]", f"names {context} again. Take it out."))
    if not check.contexts:
        faults.append(Fault(f"{path}.contexts", f"is empty: the check would never run. It can run as: {', '.join(possible)}."))
    if "job" in check.contexts and check.schedule is None:
        message = "is missing: with the context job, give cron's five fields, such as */15 * * * *."
        faults.append(Fault(f"{path}.schedule", message, (f"{path}.contexts",)))
    if check.contexts and "job" not in check.contexts and check.schedule is not None:
        message = "is for the context job alone, which contexts does not name. Add that, or take the schedule out."
        faults.append(Fault(f"{path}.schedule", message, (f"{path}.contexts",)))
    return faults
