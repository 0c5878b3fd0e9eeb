"""Rules of a node set's additions to its line in slurm.conf: cores, CPUs and memory kept from jobs, compared with what the node has.

slurmctld accepts most of these mistakes and silently uses another value. Source: _create_conf_node of Slurm's src/common/read_config.c, and
_set_gpu_spec of src/slurmctld/node_mgr.c for RestrictedCoresPerGPU.
"""

from collections import Counter

from configs.faults import Fault, quoted
from configs.models.node_set import NodeSet
from configs.models.shapes import Shape, gpu_sockets
from configs.rules.slurm_types import readable
from configs.rules.slurm_words import NODE_VALUES
from slurm.conf import number_of

MOST_CPUS = 65_533
"""CPUs of a node are a number of 16 bits, whose last two values have meanings of their own."""
MOST_GPUS = 1024
"""GPUs of a node. Source: MAX_GRES_BITMAP of Slurm's src/interfaces/gres.h."""


def check_node_settings(path: str, node_set: NodeSet, shape: Shape, sources: tuple[str, ...]) -> list[Fault]:
    """Faults of `slurmd` compared with the shape of the set's nodes. `sources`: paths outside the set that the shape comes from."""
    settings = readable(node_set.slurmd, NODE_VALUES)
    about = (f"{path}.cpus", f"{path}.memoryMiB", f"{path}.gpus", *sources)

    def fault(name: str, message: str) -> Fault:
        return Fault(f"{path}.slurmd.{settings[name][0]}", message, about)

    faults: list[Fault] = []
    cores = shape.sockets * shape.cores_per_socket
    if "CoreSpecCount" in settings and "CpuSpecList" in settings:
        faults.append(fault("CoreSpecCount", "cannot be combined with CpuSpecList: Slurm uses only one of the two. Remove one."))
    elif "CoreSpecCount" in settings and (number_of(settings["CoreSpecCount"][1]) or 0) >= cores:
        message = f"{settings['CoreSpecCount'][1]} leaves no core of {cores} to jobs; Slurm would take 1 instead. Lower it."
        faults.append(fault("CoreSpecCount", message))
    if "CpuSpecList" in settings and (mistake := _list_mistake(settings["CpuSpecList"][1], shape.cpus)):
        faults.append(fault("CpuSpecList", mistake))
    if shape.cpus > MOST_CPUS:
        faults.append(Fault(f"{path}.cpus", f"{shape.cpus} is more than Slurm can count on a node ({MOST_CPUS}). Lower it.", sources))
    if shape.gres_count > MOST_GPUS:
        message = f"{shape.gres_count} is more than Slurm can count on a node ({MOST_GPUS}). Lower it, in the pool, too."
        faults.append(Fault(f"{path}.gpus.count", message, sources))
    if "RestrictedCoresPerGPU" in settings and (
        mistake := _restricted_mistake(number_of(settings["RestrictedCoresPerGPU"][1]) or 0, shape)
    ):
        faults.append(fault("RestrictedCoresPerGPU", mistake))
    return [*faults, *_check_sockets(f"{path}.gpus.sockets", shape, about)]


def _restricted_mistake(cores: int, shape: Shape) -> str:
    if not shape.gpu_count:
        return "is for nodes with GPUs, and this set has none. Leave it out."
    near = gpu_sockets(shape)
    if not near:
        return f"needs to know which of {shape.sockets} sockets is beside each of {shape.gpu_count} GPUs. Say it under gpus.sockets."
    gpus = max(Counter(near).values()) * shape.gres_count // shape.gpu_count
    what = "instances of MIG" if shape.gpus and shape.gpus.mig else "GPUs"
    if cores * gpus > shape.cores_per_socket:
        return f"{cores} for each of {gpus} {what} beside a socket are more than its cores ({shape.cores_per_socket}). Lower it."
    return ""


def _check_sockets(path: str, shape: Shape, about: tuple[str, ...]) -> list[Fault]:
    sockets = shape.gpus.sockets if shape.gpus else ()
    if not sockets:
        return []
    if len(sockets) != shape.gpu_count:
        message = f"{len(sockets)} sockets for {shape.gpu_count} GPUs. Give one for each GPU, in the order of their device files."
        return [Fault(path, message, about)]
    named = f"0 to {shape.sockets - 1}" if shape.sockets > 1 else "0 only"
    message = f"there is no socket {{}}: a node of this set has {named}. A set with cpus of its own is one socket."
    return [Fault(f"{path}[{at}]", message.format(socket), about) for at, socket in enumerate(sockets) if socket >= shape.sockets]


def _list_mistake(text: str, cpus: int) -> str | None:
    """What is wrong with a list of CPUs that Slurm can read."""
    reserved: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            return f"{quoted(part)} goes backwards. Slurm would keep no CPU from jobs."
        reserved |= _span(int(first), int(last or first), cpus)
    if max(reserved) >= cpus:
        return f"{quoted(text)} names CPU {max(reserved)}, and the node has 0 to {cpus - 1}. Slurm would keep no CPU from jobs."
    if len(reserved) == cpus:
        return f"{quoted(text)} leaves no CPU of {cpus} to jobs."
    return None


def _span(first: int, last: int, most: int) -> set[int]:
    """The numbers of a range; of those beyond the node's CPUs, only the last."""
    return {*range(first, min(last, most) + 1), last}
