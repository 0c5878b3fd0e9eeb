"""The GPUs of a node as the stack file declares them. programs/worker compares them with the machine's."""

from configs.models.machines import Machine
from configs.models.shapes import Shape, gpu_sockets
from programs.worker.settings import DeclaredGpus


def build_declared_gpus(shape: Shape, machine: Machine) -> DeclaredGpus | None:
    """A node's GPUs, or None. Memory comes from the catalogue or the pool; 0 if neither has it."""
    gpus = shape.gpus
    if gpus is None:
        return None
    return DeclaredGpus(
        vendor=gpus.vendor,
        model=gpus.model,
        count=gpus.count,
        memory_mib=machine.gpus.memory_mib if machine.gpus else 0,
        driver_name=gpus.driver_name or "",
        sockets=tuple(gpu_sockets(shape)) if shape.sockets > 1 else (),
        mig=tuple((instance.profile, instance.count) for instance in gpus.mig),
    )
