"""The condition that lists nodes drained by others, by checks, for their machines, or on request. Pure."""

from collections.abc import Iterable, Mapping

from controllers.nodeset.observed import Observed
from controllers.nodeset.pods import node_name, range_text
from controllers.nodeset.structs import Condition
from controllers.nodeset.workers import Worker
from names import annotations
from slurm.reasons import CORDON, MAINTENANCE, REQUESTED, written


def build_undrained(name: str, workers: Iterable[Worker], observed: Observed) -> Condition:
    """True when none of these workers is drained for such a reason. `name` is the set's."""
    foreign: dict[str, list[int]] = {}
    verbs: set[str] = set()
    failing: dict[str, list[int]] = {}
    requested: dict[str, list[int]] = {}
    cordoned: dict[str, list[Worker]] = {}
    announced: dict[str, list[Worker]] = {}
    for worker in workers:
        if worker.node is None:
            continue
        if worker.has_check_drain and worker.node.failures is not None:
            failing.setdefault(written(worker.node.reason), []).append(worker.ordinal)
        elif worker.has_foreign_drain:
            foreign.setdefault(worker.node.reason or "no reason given", []).append(worker.ordinal)
            verbs.add("resume" if "DOWN" in worker.node.state.flags else "undrain")
        elif worker.has_requested_drain:
            requested.setdefault(written(worker.node.reason).removeprefix(REQUESTED), []).append(worker.ordinal)
        elif worker.has_machine_drain:
            by_machine = cordoned if worker.node.reason.startswith(CORDON) else announced
            by_machine.setdefault(worker.drained_machine, []).append(worker)
    parts: list[str] = []
    if foreign:
        # UNDRAIN leaves DOWN in place (measured on 26.05).
        verb = "state=undrain, or state=resume for a node that is down" if len(verbs) > 1 else f"state={min(verbs)}"
        parts.append(f"{_by_reason(name, foreign)}. These are left alone; lift with: scontrol update nodename=... {verb}")
    if failing:
        parts.append(f"{_by_reason(name, failing)}. These are lifted once the checks that look at them pass")
    parts += [_of_machines(name, workers_by_machine, observed) for workers_by_machine in (cordoned, announced) if workers_by_machine]
    if requested:
        first = node_name(name, min(min(ordinals) for ordinals in requested.values()))
        lift = f"each is lifted once its pod has the annotation no more: kubectl annotate pod {first} {annotations.DRAIN_REQUESTED}-"
        parts.append(f"{_by_reason(name, requested)}. These were requested by {annotations.DRAIN_REQUESTED}; {lift}")
    if not parts:
        return Condition("Undrained", "True", "NoneDrained")
    kinds = (foreign, "DrainedByOthers"), (failing, "ChecksFail"), (cordoned, "Cordoned"), (announced, "MaintenanceAnnounced")
    reason = next((reason for nodes, reason in kinds if nodes), "DrainRequested")
    return Condition("Undrained", "False", reason, ". ".join(parts))


def _by_reason(name: str, by_reason: Mapping[str, list[int]]) -> str:
    shown = sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:3]
    return "; ".join(f"{range_text(name, ordinals)}: {reason}" for reason, ordinals in shown)


def _of_machines(name: str, by_machine: Mapping[str, list[Worker]], observed: Observed) -> str:
    """The machine with the most nodes, and the number of the others."""
    machine, workers = max(by_machine.items(), key=lambda entry: len(entry[1]))
    known, node = observed.machines.get(machine), workers[0].node
    is_cordon = node is not None and node.reason.startswith(CORDON)
    is_gone = known is None and any(worker.pod is not None and worker.pod.machine == machine for worker in workers)
    lift = "each is lifted once its pod runs on another machine"
    if is_cordon and not is_gone:
        lift = f"lift with: kubectl uncordon {machine}"
        why = f"{machine} is cordoned ({known.words})" if known is not None and known.words else f"{machine} is cordoned"
    elif is_cordon:
        why = f"{machine} was cordoned and its Kubernetes node is deleted"
    elif not is_gone:
        lift = "each is lifted once that is taken back, or its pod runs on another machine"
        why = f"maintenance was announced for {written(node.reason).removeprefix(MAINTENANCE) if node is not None else machine}"
    else:
        why = f"maintenance was announced for {machine} and its Kubernetes node is deleted"
    other_machines = len(by_machine) - 1
    more = f"; {other_machines} {'machine' if other_machines == 1 else 'machines'} more likewise" if other_machines else ""
    return f"{range_text(name, [worker.ordinal for worker in workers])} drained, as {why}{more}; {lift}"
