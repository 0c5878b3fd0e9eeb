"""Rules of health checks of GPUs: their node sets have such GPUs, and there is something to compare with."""

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, looks_at, per_of
from configs.models.node_set import Gpus
from configs.models.shapes import known_machine
from configs.render.check_facts import expected_bus_gbs
from programs.node_checks.kinds import KINDS, CheckKind

_WHOLE: tuple[CheckKind, ...] = ("nccl", "burn")
"""The checks that need whole GPUs: CUDA uses one instance of MIG for each process."""
_LEVELS_S = {1: 30, 2: 180, 3: 1200, 4: 3600}
"""Seconds that each level of dcgmi diag may take: normally seconds, 2 and 15 minutes, and longer. Source: NVIDIA's manual of dcgmi diag."""

_LEAST_BURN_S = 30
"""gpu_burn reports a GPU once it has done a whole round, which takes seconds where the GPU's memory is large."""


def check_gpu_checks(path: str, check: HealthCheck, cluster: Cluster) -> list[Fault]:
    """Faults that only checks of GPUs can have."""
    faults = _check_sets(path, check, cluster)
    if check.check == "dcgm":
        faults += _check_level(path, check)
    if check.check == "nccl":
        faults += _check_limit(path, check, cluster)
    if check.check == "burn" and 0 < (seconds := check.settings.get("seconds", _LEAST_BURN_S)) < _LEAST_BURN_S:
        message = f"{seconds} is less than {_LEAST_BURN_S}: gpu_burn may not report each GPU's speed by then. Raise it."
        faults.append(Fault(f"{path}.settings.seconds", message))
    return faults


def _check_sets(path: str, check: HealthCheck, cluster: Cluster) -> list[Fault]:
    """Faults of the GPUs of each set. Unknown names are reported elsewhere."""
    faults: list[Fault] = []
    positions = {node_set.name: position for position, node_set in reversed([*enumerate(cluster.node_sets)])}
    for at, name in enumerate(check.node_sets):
        index = positions.get(name)
        if index is None or not KINDS[check.check].vendors or not looks_at(check, cluster.node_sets[index]):
            continue
        if mistake := _mistake(check, _gpus_of(cluster, index)):
            about = (f"cluster.nodeSets[{index}].gpus", f"{path}.check")
            faults.append(Fault(f"{path}.nodeSets[{at}]", f"the node set {quoted(name)} has {mistake} Leave it out.", about))
    counts = {node_set.gpus.count for node_set in cluster.node_sets if node_set.gpus is not None and looks_at(check, node_set)}
    if check.check == "nccl" and per_of(check) != "node" and len(counts) > 1:
        message = (
            "the nodes of these sets have different numbers of GPUs, and a job has the same on each. Give each set a check of its own."
        )
        faults.append(Fault(f"{path}.nodeSets", message, (f"{path}.per",)))
    return faults


def _gpus_of(cluster: Cluster, index: int) -> Gpus | None:
    """The GPUs of a set; those of its machine if the vendors differ, which is reported elsewhere."""
    node_set = cluster.node_sets[index]
    pool = next((pool for pool in cluster.node_pools if pool.name == node_set.pool), None)
    machine = known_machine(pool) if pool else None
    if node_set.gpus is None or machine is None or machine.gpus is None:
        return node_set.gpus
    return node_set.gpus.model_copy(update={"vendor": machine.gpus.vendor})


def _mistake(check: HealthCheck, gpus: Gpus | None) -> str:
    """Why a set with these GPUs cannot be checked; empty where it can."""
    if gpus is None:
        return "no GPUs to check."
    if gpus.vendor not in KINDS[check.check].vendors:
        return f"GPUs of {gpus.vendor}, which the {check.check} check does not know."
    if gpus.mig and check.check in _WHOLE:
        return f"GPUs in parts (mig), and the {check.check} check needs whole ones."
    if check.check == "nccl" and per_of(check) == "node" and gpus.count < 2:
        return "one GPU a node, which reduces with no other."
    return ""


def _check_level(path: str, check: HealthCheck) -> list[Fault]:
    level = check.settings.get("level", KINDS["dcgm"].limits["level"])
    if level not in _LEVELS_S:
        return [Fault(f"{path}.settings.level", f"{level} is not a level of dcgmi diag. Give a number from 1 to {max(_LEVELS_S)}.")]
    if check.timeout_s < _LEVELS_S[level]:
        message = f"{check.timeout_s} is too short: level {level} may take {_LEVELS_S[level]} s. Raise it, or lower the level."
        return [Fault(f"{path}.timeoutS", message, (f"{path}.settings.level",))]
    return []


def _check_limit(path: str, check: HealthCheck, cluster: Cluster) -> list[Fault]:
    """A fault for a check without a limit to fail by: the catalogue has none, and no pair is compared with others. 0 is a limit: such a
    check looks at the data only."""
    per, limit = per_of(check), check.settings.get("minBusBandwidthGBs")
    sets = [node_set for node_set in cluster.node_sets if node_set.name in check.node_sets]
    pools = {pool.name: pool for pool in cluster.node_pools}
    are_known = all(node_set.pool in pools and known_machine(pools[node_set.pool]) is not None for node_set in sets)
    if limit is None and len(sets) == len(check.node_sets) and are_known and (expected := expected_bus_gbs(cluster, check)):
        usual, message_mib = KINDS["nccl"].limits["messageMiB"], check.settings.get("messageMiB", 0)
        if 0 < message_mib < usual:
            message = (
                f"is missing: with messageMiB {message_mib}, below {usual}, healthy GPUs do not reach the catalogue's {expected} GB/s. "
                "Give the least bus bandwidth of nccl-tests with such messages, or leave messageMiB out."
            )
            return [Fault(f"{path}.settings.minBusBandwidthGBs", message, (f"{path}.settings.messageMiB",))]
    if per == "pair" or limit or (limit == 0 and per == "node") or len(sets) < len(check.node_sets) or not are_known:
        return []
    if limit is None and expected_bus_gbs(cluster, check):
        return []
    message = (
        "is missing: the machine catalogue does not tell how fast these GPUs reduce, so there is nothing to compare with. "
        "Give the least bus bandwidth of nccl-tests."
    )
    return [Fault(f"{path}.settings.minBusBandwidthGBs", message, (f"{path}.per", f"{path}.nodeSets"))]
