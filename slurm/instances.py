"""Identifies the machine of a Slurm node: the Kubernetes node's name and its boot, as the worker reports it (InstanceId). Pure.

A Slurm node's name survives a move to another machine, so notes about the machine include this.
"""


def instance(machine: str, boot: str) -> str:
    """The InstanceId of a node; empty where the machine is not known."""
    return f"{machine}/{boot.strip()}" if machine else ""


def read_instance(text: str) -> tuple[str, str]:
    """The Kubernetes node and its boot ID, either empty where the text does not say."""
    machine, _, boot = text.partition("/")
    return machine, boot
