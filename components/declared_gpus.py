"""The GPUs of a node as its stack file declares them, for the worker: programs/worker compares them with the GPUs that it finds."""

from components.labels import Manifest
from configs.models.machines import Machine
from configs.models.shapes import Shape, gpu_sockets


def build_declared_gpus(shape: Shape, machine: Machine) -> Manifest:
    """A node's GPUs as programs/worker/gpus.py reads them; empty for a node without GPUs.

    The catalogue and the pool say how much memory one has, if anything does.
    """
    gpus = shape.gpus
    if gpus is None:
        return {}
    memory_mib = machine.gpus.memory_mib if machine.gpus else 0
    sockets = gpu_sockets(shape) if shape.sockets > 1 else ()
    return {
        "vendor": gpus.vendor,
        "model": gpus.model,
        "count": gpus.count,
        **({"memoryMiB": memory_mib} if memory_mib else {}),
        **({"driverName": gpus.driver_name} if gpus.driver_name else {}),
        **({"mig": [{"profile": each.profile, "count": each.count} for each in gpus.mig]} if gpus.mig else {}),
        **({"sockets": list(sockets)} if sockets else {}),
    }
