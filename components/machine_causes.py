"""The rules about conditions and taints of machines in a NodeSet object."""

from components.labels import Manifest
from configs.models.machine_causes import BUILT_IN, EC2, MachineCause
from configs.models.node_set import NodeSet


def build_machine_causes(node_set: NodeSet, asks_ec2: bool = False) -> list[Manifest]:
    """The conditions and taints that are causes: the user's rules, then the table of all sets."""
    return [_machine_cause(rule) for rule in (*node_set.machine_causes, *(EC2 if asks_ec2 else ()), *BUILT_IN)]


def _machine_cause(rule: MachineCause) -> Manifest:
    source: Manifest = {"taint": rule.taint} if rule.condition is None else {"condition": rule.condition, "status": str(rule.status)}
    return {**source, "kind": rule.kind, "wish": rule.wish}
