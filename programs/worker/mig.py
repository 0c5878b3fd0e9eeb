"""The instances that NVIDIA's MIG divides GPUs into: which there are, and device files for them whose names are the same on every node.

`read_instances` is pure. `make_devices` makes the files that gres.conf names (slurm/mig.py), and tells images/slurm/root/mig.c the
names by which CUDA knows the instances. Simulated ones are devices with nothing behind them.
"""

import os
import re
import stat

from names import paths
from slurm.mig import FOLDER, device_files
from slurm.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:  # each worker pays for what is imported here
    from collections.abc import Sequence
    from xml.etree import ElementTree

LIST = paths.MIG
"""For images/slurm/root/mig.c: a line for each instance, with the device file of its compute and its UUID."""
_MINORS = "/proc/driver/nvidia-caps/mig-minors"
_DEVICES = "/proc/devices"
_SIMULATED_MAJOR, _SIMULATED_MINOR = 195, 1000
"""Of the driver's own devices, beyond those of its GPUs: nothing answers there without a driver."""


class MigError(Exception):
    """The instances cannot be read; the text says why."""


@record
class Instance:
    """One instance of MIG."""

    gpu: int
    """Number of its GPU's device file."""
    profile: str
    uuid: str
    """CUDA's name for it."""
    ids: "tuple[int, int]"
    """NVIDIA's numbers of the GPU instance, unique on its GPU, and of the compute instance in it."""


def read_instances(listing: str, details: str) -> "list[tuple[Instance, ...]]":
    """The instances of each GPU, from `nvidia-smi -L` (profiles and UUIDs) and `nvidia-smi -q -x` (everything else). Raises MigError.

    Both list the GPUs in the same order, and the instances of each by the same index.
    """
    numbers = _read_numbers(details)
    found: list[tuple[Instance, ...]] = []
    for line in listing.splitlines():
        if re.match(r"GPU\s+\d+:", line):
            found.append(())
        elif named := re.match(r"\s+MIG\s+(\S+)\s+Device\s+(\d+):\s+\(UUID:\s+(\S+)\)", line):
            try:
                minor, ids = numbers.pop((len(found) - 1, int(named[2])))
            except KeyError:
                raise MigError(f"nvidia-smi lists instance {named[2]} of GPU {len(found) - 1}, and gives no details of it") from None
            found[-1] = (*found[-1], Instance(minor, named[1], named[3], ids))
    if numbers:
        raise MigError(f"nvidia-smi gives details of {len(numbers)} instances of MIG that it does not list")
    return found


def _read_numbers(details: str) -> "dict[tuple[int, int], tuple[int, tuple[int, int]]]":
    """By GPU and index of the instance: the number of the GPU's device file, and the instance's ids."""
    from xml.etree import ElementTree

    numbers: dict[tuple[int, int], tuple[int, tuple[int, int]]] = {}
    try:
        for at, gpu in enumerate(ElementTree.fromstring(details).findall("gpu")):  # noqa: S314 - the driver's own words
            for each in gpu.findall("mig_devices/mig_device"):
                ids = (_number(each, "gpu_instance_id"), _number(each, "compute_instance_id"))
                numbers[at, _number(each, "index")] = (_number(gpu, "minor_number"), ids)
    except (ElementTree.ParseError, ValueError) as error:
        raise MigError(f"nvidia-smi gives details of another form: {error}") from None
    return numbers


def _number(element: "ElementTree.Element", name: str) -> int:
    text = (element.findtext(name) or "").strip()
    if not text.isdecimal():
        raise ValueError(f"{name} is {text!r}")
    return int(text)


def read_minors(text: str) -> "dict[str, int]":
    """From the kernel's table: `gpu0/gi7/ci0/access 66`."""
    lines = [line.split() for line in text.splitlines()]
    return {fields[0]: int(fields[1]) for fields in lines if len(fields) == 2 and fields[1].isdecimal()}


def read_major(devices: str) -> int:
    """The major number of the driver's capabilities, from /proc/devices. Raises MigError without one."""
    if found := re.search(r"^\s*(\d+) nvidia-caps$", devices, re.MULTILINE):
        return int(found[1])
    raise MigError("the kernel knows no nvidia-caps: the driver has no MIG")


def order(instances: "Sequence[Instance]", profiles: "Sequence[str]") -> "list[tuple[Instance, int]]":
    """Each instance with its number on its GPU, by the profiles of one GPU in the order of gres.conf. The rest is left out."""
    numbered: list[tuple[Instance, int]] = []
    for gpu in sorted({each.gpu for each in instances}):
        left = sorted([each for each in instances if each.gpu == gpu], key=lambda each: each.ids)
        for at, profile in enumerate(profiles):
            if found := next((each for each in left if each.profile == profile), None):
                left.remove(found)
                numbered.append((found, at))
    return numbered


def make_devices(instances: "Sequence[Instance]", profiles: "Sequence[str]", is_simulated: bool) -> None:
    """Makes the device files, removes those of earlier instances, and writes the list of UUIDs. Raises MigError, OSError.

    A file that is there and is right stays: jobs may have it open.
    """
    numbered = order(instances, profiles)
    major = _SIMULATED_MAJOR if is_simulated else read_major(_text(_DEVICES))
    minors = {} if is_simulated else read_minors(_text(_MINORS))
    os.makedirs(FOLDER, mode=0o755, exist_ok=True)
    wanted: dict[str, int] = {}
    lines: list[str] = []
    for number, (instance, at) in enumerate(numbered):
        files = device_files(instance.gpu, at)
        if is_simulated:
            devices = [_SIMULATED_MINOR + 2 * number, _SIMULATED_MINOR + 2 * number + 1]
        else:
            path = f"gpu{instance.gpu}/gi{instance.ids[0]}"
            devices = [_minor(minors, f"{path}/access"), _minor(minors, f"{path}/ci{instance.ids[1]}/access")]
        wanted |= {file: os.makedev(major, minor) for file, minor in zip(files, devices, strict=True)}
        lines.append(f"{files[1]} {instance.uuid}\n")
    for name in os.listdir(FOLDER):
        file = f"{FOLDER}/{name}"
        there = os.stat(file)
        if stat.S_ISCHR(there.st_mode) and there.st_rdev == wanted.get(file):
            del wanted[file]
        else:
            os.unlink(file)
    for file, device in wanted.items():
        os.mknod(file, 0o444 | stat.S_IFCHR, device)
        os.chmod(file, 0o444)  # as the driver makes its own
    with open(f"{LIST}.new", "w", encoding="ascii") as out:
        out.writelines(lines)
    os.rename(f"{LIST}.new", LIST)


def _minor(minors: "dict[str, int]", name: str) -> int:
    try:
        return minors[name]
    except KeyError:
        raise MigError(f"the kernel has no device for {name}") from None


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()
