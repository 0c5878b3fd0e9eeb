"""Rules of remedies and of what starts them: that each step can be carried out, that what confirms a fault looks at the set, and that
each rule about machines says one thing."""

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.node_set import NodeSet
from configs.rules.names import check_distinct
from slurm.causes import KUBERNETES_CONDITIONS


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
        faults.append(Fault(f"{within}.machines", f"is missing: {on_machines[0]} needs it. Say DeleteNode, EC2 or Webhook.", about))
    if "RebootMachine" in remedies.steps and remedies.machines == "DeleteNode":
        message = "DeleteNode cannot reboot a machine. Take EC2 or Webhook, or leave RebootMachine out of steps."
        faults.append(Fault(f"{within}.machines", message, about))
    if remedies.machines == "EC2" and cluster.ec2 is None:
        message = "EC2 needs cluster.ec2: say at least its region, such as ec2: {region: eu-west-1}."
        faults.append(Fault(f"{within}.machines", message, ("cluster.ec2",)))
    if remedies.machines == "Webhook" and remedies.webhook is None:
        faults.append(Fault(f"{within}.webhook", "is missing: with machines: Webhook, give the address of your program.", about))
    if remedies.machines != "Webhook" and remedies.webhook is not None:
        faults.append(Fault(f"{within}.webhook", "goes with machines: Webhook only. Say so, or leave it out.", about))
    if remedies.confirmed_by is not None:
        checks = {check.name: check for check in cluster.health_checks}
        check = checks.get(remedies.confirmed_by)
        if check is None:
            hint = did_you_mean(remedies.confirmed_by, checks)
            message = f"no health check is called {quoted(remedies.confirmed_by)}. {hint}"
            faults.append(Fault(f"{within}.confirmedBy", message, ("cluster.healthChecks",)))
        elif node_set.name not in check.node_sets:
            message = f"the health check {quoted(check.name)} does not look at {quoted(node_set.name)}. Add the set to its nodeSets."
            faults.append(Fault(f"{within}.confirmedBy", message, ("cluster.healthChecks", f"{path}.name")))
    return faults


def check_machine_causes(path: str, node_set: NodeSet) -> list[Fault]:
    """Faults of the rules about conditions and taints of machines. `path` is the node set's."""
    faults: list[Fault] = []
    for at, rule in enumerate(node_set.machine_causes):
        within = f"{path}.machineCauses[{at}]"
        if (rule.condition is None) == (rule.taint is None):
            given = "has neither condition nor taint" if rule.taint is None else "has both condition and taint"
            faults.append(Fault(within, f"{given}: name one of them."))
        if rule.condition in KUBERNETES_CONDITIONS:
            message = f"{quoted(rule.condition)} is Kubernetes' own: whether a machine is Ready is heeded anyway, the others are no causes."
            faults.append(Fault(f"{within}.condition", f"{message} Leave the rule out."))
        if rule.taint is not None and not rule.status:
            faults.append(Fault(f"{within}.status", "goes with condition only: a taint is there, or it is not. Leave it out."))
        if rule.kind == "maintenance" and rule.wish in ("reboot", "replace"):
            message = f"{rule.wish} is for faults: maintenance is done by others. Say drain or none, or another kind."
            faults.append(Fault(f"{within}.wish", message, (f"{within}.kind",)))
    return faults
