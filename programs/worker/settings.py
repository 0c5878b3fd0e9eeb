"""The GPUs of a node as its stack file declares them: the variable SLIPWAY_DECLARED_GPUS. components/declared_gpus.py makes them."""

import json

from slurm.records import record


@record
class DeclaredGpus:
    """The GPUs of one node."""

    vendor: str
    model: str
    count: int
    memory_mib: int = 0
    """Of one GPU; 0 if unknown."""
    driver_name: str = ""
    """The driver's own name for the model, where `model` is not a part of it."""
    sockets: "tuple[int, ...]" = ()
    """The socket beside each GPU, as in gres.conf; empty if gres.conf names none."""
    mig: "tuple[tuple[str, int], ...]" = ()
    """Profile and number of the MIG instances on each GPU, in the order of gres.conf. Empty for whole GPUs."""
    is_simulated: bool = False
    """Not part of the JSON: SLIPWAY_SIMULATED_GPUS has it."""

    @property
    def profiles(self) -> "tuple[str, ...]":
        """The profile of each instance of a GPU."""
        return tuple([profile for profile, count in self.mig for _ in range(count)])


def to_json(gpus: DeclaredGpus) -> str:
    """The variable's value. What is empty or 0 is left out."""
    optional = {
        "memoryMiB": gpus.memory_mib,
        "driverName": gpus.driver_name,
        "mig": [{"profile": profile, "count": count} for profile, count in gpus.mig],
        "sockets": list(gpus.sockets),
    }
    present = {key: value for key, value in optional.items() if value}
    return json.dumps({"vendor": gpus.vendor, "model": gpus.model, "count": gpus.count, **present})


def from_json(text: str, is_simulated: bool = False) -> DeclaredGpus:
    """Reads what `to_json` wrote."""
    values = json.loads(text)
    return DeclaredGpus(
        *(values["vendor"], values["model"], values["count"], values.get("memoryMiB", 0), values.get("driverName", "")),
        sockets=tuple(values.get("sockets", ())),
        mig=tuple([(instance["profile"], instance["count"]) for instance in values.get("mig", ())]),
        is_simulated=is_simulated,
    )
