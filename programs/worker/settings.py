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
    """Of one GPU; 0 where nothing tells."""
    driver_name: str = ""
    """The driver's own name for the model, where `model` is no part of it."""
    sockets: "tuple[int, ...]" = ()
    """The socket beside each GPU, as gres.conf has it; none where it does not tell."""
    mig: "tuple[tuple[str, int], ...]" = ()
    """The instances of MIG that each GPU is to have, in the order of gres.conf: profile and number. None for whole GPUs."""
    is_simulated: bool = False
    """In a variable of its own, SLIPWAY_SIMULATED_GPUS."""

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
    given = {key: value for key, value in optional.items() if value}
    return json.dumps({"vendor": gpus.vendor, "model": gpus.model, "count": gpus.count, **given})


def from_json(text: str, is_simulated: bool = False) -> DeclaredGpus:
    """What `to_json` has written."""
    given = json.loads(text)
    return DeclaredGpus(
        *(given["vendor"], given["model"], given["count"], given.get("memoryMiB", 0), given.get("driverName", "")),
        sockets=tuple(given.get("sockets", ())),
        mig=tuple([(each["profile"], each["count"]) for each in given.get("mig", ())]),
        is_simulated=is_simulated,
    )
