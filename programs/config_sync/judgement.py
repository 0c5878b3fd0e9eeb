"""What a version of the files would change for slurmctld: nodes and partitions that they remove, and sizes of nodes.

Thin: this module reads the files and asks slurmctld; plan and sizes decide.
"""

from pathlib import Path

from slurm.states import may_be_removed

from . import copies, sizes, slurm
from .plan import ConfigError, Declared, Going, check_config, find_going, find_obstacles, names_in
from .slurm import Reading, SlurmError


class Waiting(Exception):
    """slurmctld may not take the files now; the text says what they wait for."""


def read_declared(version: Path) -> Declared:
    """What the files declare. A file that cannot be read is a fault, never a file without nodes. Raises Waiting."""
    try:
        text = (version / "slurm.conf").read_text()
        check_config(text)
        return Declared(slurm.expand(names_in(text, "NodeName")), slurm.expand(names_in(text, "PartitionName")))
    except (ConfigError, OSError, UnicodeDecodeError, SlurmError) as error:
        raise Waiting(f"names of nodes and partitions that can be read ({error})") from None


def read_going(declared: Declared) -> tuple[Reading, Going, list[str]]:
    """A reading, what goes by it, and what that waits for. Raises Waiting."""
    try:
        reading = slurm.read()
        going = find_going(reading.nodes, reading.partitions, declared)
        wanted = slurm.expand(job.nodes for job in reading.jobs if job.nodes) if going.nodes else frozenset[str]()
    except SlurmError as error:
        raise Waiting(f"an answer of slurmctld ({error})") from None
    return reading, going, find_obstacles(going, reading.jobs, wanted)


def may_go_back(good: Path) -> bool:
    """True if slurmctld may have an earlier copy again.

    That removes no node or partition, and changes the size of no node that may have jobs.
    """
    try:
        reading, going, _ = read_going(read_declared(good))
        busy, _ = judge_sizes(good, reading)
    except Waiting:
        return False
    return not (going.nodes or going.partitions or busy)


def judge_sizes(version: Path, reading: Reading) -> tuple[frozenset[str], dict[str, str]]:
    """The nodes that may have jobs and would change their size, and by name the files in which they keep it. Raises Waiting."""
    old, new = _read_texts(copies.ACCEPTED), _read_texts(version)
    # A node that is off may be woken the next moment, for a job that has not begun then. Its drain would end that job.
    resized = sizes.find_resized(old.get(sizes.SLURM_CONF, ""), new.get(sizes.SLURM_CONF, ""))
    held = frozenset(name for name in resized & reading.nodes.keys() if not may_be_removed(reading.nodes[name]))
    return held, sizes.keep_sizes(old, new, held)


def _read_texts(folder: Path) -> dict[str, str]:
    """The existing files with lines of nodes. Raises Waiting."""
    try:
        return {name: (folder / name).read_text() for name in (sizes.SLURM_CONF, sizes.GRES_CONF) if (folder / name).exists()}
    except (OSError, UnicodeDecodeError) as error:
        raise Waiting(f"sizes of nodes that can be read ({error})") from None
