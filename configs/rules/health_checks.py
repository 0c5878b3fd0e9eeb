"""Rules of health checks: that they can run where they should, when they should, with limits that they know."""

from collections.abc import Mapping

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.health_checks import CHECK_CONTEXTS, CHECK_SETTINGS, CheckKind, HealthCheck
from configs.rules.names import Names, check_references, check_unique
from configs.rules.schedules import schedule_mistake

_WAITS: Mapping[CheckKind, str] = {"mounts": "maxAnswerS", "processes": "stuckS"}
"""Limits that are the seconds for which a check waits."""


def check_health_checks(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of the health checks."""
    faults = check_unique("cluster.healthChecks", "health check", [check.name for check in cluster.health_checks])
    for at, check in enumerate(cluster.health_checks):
        faults += _check_health_check(f"cluster.healthChecks[{at}]", check, cluster, names)
    return faults


def _check_health_check(path: str, check: HealthCheck, cluster: Cluster, names: Names) -> list[Fault]:
    faults = check_references(f"{path}.nodeSets", "node set", check.node_sets, names.node_sets)
    if not check.node_sets:
        faults.append(Fault(f"{path}.nodeSets", "is empty: the check would look at nothing."))
    faults += _check_contexts(path, check)
    if check.schedule is not None and (mistake := schedule_mistake(check.schedule)):
        faults.append(Fault(f"{path}.schedule", mistake))
    if check.check == "gpu":
        positions = {node_set.name: position for position, node_set in reversed([*enumerate(cluster.node_sets)])}
        for at, name in enumerate(check.node_sets):
            index = positions.get(name)
            if index is not None and cluster.node_sets[index].gpus is None:
                message = f"the node set {quoted(name)} has no GPUs to check. Leave it out."
                faults.append(Fault(f"{path}.nodeSets[{at}]", message, (f"cluster.nodeSets[{index}].gpus", f"{path}.check")))
    if check.check == "command" and not check.command:
        faults.append(
            Fault(f"{path}.command", 'is missing: with "check: command", give the command as a list of words.', (f"{path}.check",))
        )
    if check.check != "command" and check.command:
        message = f'the {check.check} check runs no command. Take it out, or set "check: command".'
        faults.append(Fault(f"{path}.command", message, (f"{path}.check",)))
    limits = CHECK_SETTINGS[check.check]
    waits = _WAITS.get(check.check, "")
    if waits and check.settings.get(waits, limits[waits]) >= check.timeout_s:
        message = (
            f"{check.timeout_s} is not more than {waits} ({check.settings.get(waits, limits[waits])}): the check could never end. Raise it."
        )
        faults.append(Fault(f"{path}.timeoutS", message, (f"{path}.settings.{waits}",)))
    for key, value in check.settings.items():
        if key not in limits:
            message = f"the {check.check} check has no such limit. {did_you_mean(key, limits)}"
            faults.append(Fault(f"{path}.settings.{key}", message, (f"{path}.check",)))
        elif key.endswith("Percent") and value > 100:
            faults.append(Fault(f"{path}.settings.{key}", f"{value} is more than 100 percent."))
        elif key.endswith("Percent") and value == 100:
            faults.append(Fault(f"{path}.settings.{key}", "100 would drain every node: something is always in use. Lower it."))
    return faults


def _check_contexts(path: str, check: HealthCheck) -> list[Fault]:
    """Faults of when the check runs."""
    faults: list[Fault] = []
    possible = CHECK_CONTEXTS[check.check]
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
