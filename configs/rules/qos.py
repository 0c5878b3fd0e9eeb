"""Rules of QOS: limits that a job can keep, thresholds that count, no circle of preemption. References are checked in `accounts`."""

from configs.faults import Fault, quoted
from configs.models.accounts import Qos
from configs.models.cluster import Cluster

_PATH = "cluster.accounting.qos"
_THRESHOLD = "EnforceUsageThreshold"


def check_qos(cluster: Cluster) -> list[Fault]:
    """Faults of each QOS, and of the circles among them."""
    faults: list[Fault] = []
    for at, qos in enumerate(cluster.accounting.qos):
        path = f"{_PATH}[{at}]"
        faults += _check_threshold(path, qos) + _check_least(path, qos)
        if qos.priority and not cluster.slurm.priority_weights.qos:
            message = f"{qos.priority} counts for nothing while slurm.priorityWeights.qos is 0. Raise that, or leave this out."
            faults.append(Fault(f"{path}.priority", message, ("cluster.slurm.priorityWeights",)))
    return faults + _check_circles(cluster.accounting.qos)


def _check_threshold(path: str, qos: Qos) -> list[Fault]:
    if qos.usage_threshold is not None and qos.usage_threshold > 1:
        message = f"{qos.usage_threshold:g} is more than any fair share factor: all jobs would be held. Give a number from 0 to 1."
        return [Fault(f"{path}.usageThreshold", message)]
    if qos.usage_threshold and _THRESHOLD not in qos.flags:
        return [Fault(f"{path}.usageThreshold", f"counts with the flag {_THRESHOLD} only. Add it to flags.", (f"{path}.flags",))]
    if _THRESHOLD in qos.flags and qos.usage_threshold is None:
        at = qos.flags.index(_THRESHOLD)
        return [Fault(f"{path}.flags[{at}]", "has no threshold to enforce. Say usageThreshold.", (f"{path}.usageThreshold",))]
    return []


def _check_least(path: str, qos: Qos) -> list[Fault]:
    """A fault if the minimum that a job must request is more than the maximum that it may have."""
    least = _amounts(qos.limits.min_tres_per_job)
    faults: list[Fault] = []
    for key, most in (("maxTresPerJob", _amounts(qos.limits.max_tres_per_job)), ("grpTres", _amounts(qos.limits.grp_tres))):
        if over := next((name for name, amount in least.items() if amount > most.get(name, amount)), None):
            message = f"{quoted(qos.limits.min_tres_per_job)} asks for more {over} than {key} allows: no job could start. Lower it."
            faults.append(Fault(f"{path}.limits.minTresPerJob", message, (f"{path}.limits.{key}",)))
    return faults[:1]


_UNITS = {"": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def _amounts(text: str | None) -> dict[str, int]:
    """The amounts of a list of TRES, memory in MiB."""
    pairs = [item.partition("=") for item in text.split(",")] if text else []
    return {name: int(value.rstrip("MGTP")) * _UNITS[value.lstrip("0123456789")] for name, _, value in pairs}


def _check_circles(all_qos: tuple[Qos, ...]) -> list[Fault]:
    """Faults of QOS that preempt each other in a circle: sacctmgr refuses a preemption loop."""
    preempts = {qos.name: qos.preempt for qos in reversed(all_qos)}
    faults: list[Fault] = []
    told: set[str] = set()
    for at, qos in enumerate(all_qos):
        below, ahead = set[str](), [*qos.preempt]
        while ahead:
            name = ahead.pop()
            if name not in below:
                below.add(name)
                ahead += preempts.get(name, ())
        if qos.name in below and qos.name not in qos.preempt and qos.name not in told:
            told |= below
            message = f"{quoted(qos.name)} is preempted in turn by a QOS that it preempts. One of them has to be the lower."
            faults.append(Fault(f"{_PATH}[{at}].preempt", message, (_PATH,)))
    return faults
