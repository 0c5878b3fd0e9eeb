"""The rules of a node set about conditions and taints of machines, as the NodeSet object has them."""

from components.labels import Manifest
from configs.models.machine_causes import BUILT_IN, EC2, MachineCause
from configs.models.node_set import NodeSet


def build_machine_causes(node_set: NodeSet, asks_ec2: bool = False) -> list[Manifest]:
    """Which conditions and taints are causes: the user's rules, and behind them the table that all sets have."""
    return [_machine_cause(rule) for rule in (*node_set.machine_causes, *(EC2 if asks_ec2 else ()), *BUILT_IN)]


def _machine_cause(rule: MachineCause) -> Manifest:
    source: Manifest = {"taint": rule.taint} if rule.condition is None else {"condition": rule.condition, "status": str(rule.status)}
    return {**source, "kind": rule.kind, "wish": rule.wish}
