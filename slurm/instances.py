"""Which machine a Slurm node is on: the name of the Kubernetes node and its boot, as the worker tells slurmctld (InstanceId). Pure.

Slurm keeps a node's name when its worker moves to another machine. Whoever notes something about the machine notes this beside it.
"""


def instance(machine: str, boot: str) -> str:
    """The InstanceId of a node; empty where the machine is not known."""
    return f"{machine}/{boot.strip()}" if machine else ""


def read_instance(text: str) -> tuple[str, str]:
    """The Kubernetes node and its boot ID, either empty where the text does not say."""
    machine, _, boot = text.partition("/")
    return machine, boot
