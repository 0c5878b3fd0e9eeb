"""Rules of remedies and of what starts them. Each step can be carried out, and the check that confirms a fault looks at the set. Each rule
about machines has either a condition or a taint, and a wish that suits its kind."""

from collections.abc import Iterable, Mapping, Sequence

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, looks_at, per_of, platform_of
from configs.models.node_set import NodeSet
from configs.rules.names import check_distinct
from programs.node_checks.kinds import KINDS
from slurm.causes import KUBERNETES_CONDITIONS

_LEAST_REBOOT_S = 900
"""EC2 forces a reboot only where the instance has not shut down within a few minutes, and such a machine then takes minutes to boot.
Source: its API reference, RebootInstances. A controller that gives up earlier lets the reboot hit the next job."""


def check_remedies(cluster: Cluster, path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of what is done about nodes that stay faulty. `path` is the node set's."""
    remedies = node_set.remedies
    if remedies is None:
        return []
    within = f"{path}.remedies"
    faults = check_distinct(f"{within}.steps", remedies.steps) + check_distinct(f"{within}.causes", remedies.causes)
    if not remedies.steps:
        faults.append(Fault(f"{within}.steps", "is empty: nothing would ever be done. Name a step such as RecreatePod."))
    if not remedies.causes:
        faults.append(Fault(f"{within}.causes", "is empty: nothing would ever be acted on. Name hardware or node, or leave it out."))
    about = (f"{within}.steps", f"{within}.machines")
    on_machines = [step for step in remedies.steps if step != "RecreatePod"]
    if on_machines and remedies.machines is None:
        faults.append(Fault(f"{within}.machines", f"is missing: {on_machines[0]} needs it. Set DeleteNode, EC2 or Webhook.", about))
    if "RebootMachine" in remedies.steps and remedies.machines == "DeleteNode":
        message = "DeleteNode cannot reboot a machine. Take EC2 or Webhook, or leave RebootMachine out of steps."
        faults.append(Fault(f"{within}.machines", message, about))
    if "RebootMachine" in remedies.steps and remedies.machine_timeout_s < _LEAST_REBOOT_S:
        message = (
            f"{remedies.machine_timeout_s} is less than {_LEAST_REBOOT_S}: a reboot may still come after that, and end a job that runs by "
            "then. Raise it, or leave RebootMachine out of steps."
        )
        faults.append(Fault(f"{within}.machineTimeoutS", message, (f"{within}.steps",)))
    if remedies.machines == "EC2" and cluster.ec2 is None:
        message = "EC2 needs cluster.ec2: set at least its region, as in ec2: {region: eu-west-1}."
        faults.append(Fault(f"{within}.machines", message, ("cluster.ec2",)))
    if remedies.machines == "Webhook" and remedies.webhook is None:
        faults.append(Fault(f"{within}.webhook", "is missing: with machines: Webhook, give the address of your program.", about))
    if remedies.machines != "Webhook" and remedies.webhook is not None:
        faults.append(Fault(f"{within}.webhook", "is only valid with machines: Webhook. Set that or remove this key.", about))
    if remedies.confirmed_by is not None:
        faults += _check_name(cluster, path, node_set, f"{within}.confirmedBy", remedies.confirmed_by)
    if remedies.verified_by and node_set.is_elastic:
        why = "what a node has to pass is forgotten when it powers down"
        return [*faults, _not_for_elastic(path, f"{within}.verifiedBy", why)]
    return faults + _check_jobs(cluster, path, node_set, f"{within}.verifiedBy", remedies.verified_by)


def check_checks_before_jobs(cluster: Cluster, path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of the checks that come before jobs. `path` is the node set's."""
    within = f"{path}.checksBeforeJobs"
    if node_set.checks_before_jobs and node_set.is_elastic:
        why = "a node that wakes for a job is never drained, so it cannot wait for checks first"
        return [_not_for_elastic(path, within, why)]
    return _check_jobs(cluster, path, node_set, within, node_set.checks_before_jobs)


def _not_for_elastic(path: str, within: str, why: str) -> Fault:
    message = f"{why}. Leave it out, and add prolog to the contexts of the checks: then they run before each job."
    return Fault(within, message, (f"{path}.max", "cluster.healthChecks"))


def _check_name(cluster: Cluster, path: str, node_set: NodeSet, within: str, name: str) -> list[Fault]:
    checks = {check.name: check for check in cluster.health_checks}
    check = checks.get(name)
    if check is None:
        message = f"no health check is called {quoted(name)}. {did_you_mean(name, checks)}"
        return [Fault(within, message, ("cluster.healthChecks",))]
    about = ("cluster.healthChecks", f"{path}.name")
    if node_set.name not in check.node_sets:
        message = f"the health check {quoted(check.name)} does not look at {quoted(node_set.name)}. Add the set to its nodeSets."
        return [Fault(within, message, about)]
    faults: list[Fault] = []
    if not looks_at(check, node_set):
        out = f"the platforms of the health check {quoted(check.name)} leave {quoted(node_set.name)} out"
        message = f"{out}. Add {platform_of(node_set)} there."
        faults.append(Fault(within, message, about))
    if check.wish == "none":
        message = f"the health check {quoted(check.name)} has the wish none, so it holds no node and starts no repair. Name another one."
        faults.append(Fault(within, message, about))
    return faults


def _check_jobs(cluster: Cluster, path: str, node_set: NodeSet, within: str, names: Sequence[str]) -> list[Fault]:
    """Faults of checks that the controller could not start one after another."""
    faults = check_distinct(within, names)
    checks = {check.name: check for check in cluster.health_checks}
    for at, name in enumerate(names):
        faults += _check_name(cluster, path, node_set, f"{within}[{at}]", name)
        check = checks.get(name)
        if check is not None and "job" not in check.contexts:
            message = f"the health check {quoted(name)} does not run as a job, so nothing can start it. Add job to its contexts."
            faults.append(Fault(f"{within}[{at}]", message, ("cluster.healthChecks",)))
        if check is not None and (per := per_of(check)) != "node":
            alone = "say per: node, or take" if "node" in KINDS[check.check].per else "take"
            message = (
                f"the health check {quoted(name)} runs between nodes (per {per}), and nodes that all wait have no good one to be compared "
                f"with. Leave it out: {alone} a check that looks at each node by itself."
            )
            faults.append(Fault(f"{within}[{at}]", message, ("cluster.healthChecks",)))
        if check is not None and (missing := [earlier for earlier in _before(check, checks) if earlier not in names[:at]]):
            which = " and ".join(missing)
            verb = "is" if len(missing) == 1 else "are"
            message = (
                f"{quoted(name)} comes after {which}, which {verb} not named here before it: name {which} first. Else it skips every node "
                "that waits."
            )
            faults.append(Fault(f"{within}[{at}]", message, (within, "cluster.healthChecks")))
    return faults


def _before(check: HealthCheck, checks: Mapping[str, HealthCheck]) -> list[str]:
    """The checks that come before this one (`after`), in running order. Unknown checks and circles are reported elsewhere."""
    earlier: list[str] = []
    visited = {check.name}

    def visit(names: Iterable[str]) -> None:
        for name in names:
            if name in checks and name not in visited:
                visited.add(name)
                visit(checks[name].after)
                earlier.append(name)

    visit(check.after)
    return earlier


def check_machine_causes(path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of the rules about conditions and taints of machines. `path` is the node set's."""
    faults: list[Fault] = []
    for at, rule in enumerate(node_set.machine_causes):
        within = f"{path}.machineCauses[{at}]"
        if (rule.condition is None) == (rule.taint is None):
            mistake = "has neither condition nor taint" if rule.taint is None else "has both condition and taint"
            faults.append(Fault(within, f"{mistake}: name one of them."))
        if rule.condition in KUBERNETES_CONDITIONS:
            message = f"{quoted(rule.condition)} is Kubernetes' own: whether a machine is Ready is heeded anyway, others are never causes."
            faults.append(Fault(f"{within}.condition", f"{message} Leave the rule out."))
        if rule.taint is not None and not rule.status:
            faults.append(Fault(f"{within}.status", "is only valid with condition: a taint has no status. Remove this key."))
        if rule.kind == "maintenance" and rule.wish in ("reboot", "replace"):
            message = f"{rule.wish} is for faults: maintenance is done by others. Set drain or none, or another kind."
            faults.append(Fault(f"{within}.wish", message, (f"{within}.kind",)))
    return faults
