"""What a cluster says of itself in a login session: the question, and the answer as values."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from slurm.tres import count_gpus

WAIT_FOR_ACCOUNT = """if scontrol show config | grep -q '^AccountingStorageEnforce .*associations'; then
  until scontrol --oneliner show assoc_mgr flags=assoc users="$(id -un)" 2>/dev/null | grep -qF " UserName=$(id -un)("; do
    if ((SECONDS > 60)); then
      echo "slurmctld knows no account of $(id -un), and refuses jobs without one. The container accounts of slurmdbd's pod says why."
      exit 1
    fi
    sleep 0.5
  done
fi
"""
"""Waits until the user has an account, where jobs need one: in a new cluster it comes seconds after slurmctld."""

QUESTION = f"""set -e
{WAIT_FOR_ACCOUNT}
echo "user|$(id -un)"
echo "folder|$(mktemp -d ~/.slipway-check.XXXXXX)"
sinfo --noheader --Node --format='node|%N|%P|%T|%G'
scontrol show config | sed -n 's/^AccountingStorageType *= */accounting|/p'
for tool in mpicc apt-get gcc mksquashfs all_reduce_perf; do if command -v "$tool" >/dev/null; then echo "tool|$tool"; fi; done
if srun --help | grep -q container-image; then echo 'tool|container-image'; fi
if said=$(sudo -n true 2>&1); then echo 'sudo|'; else echo "sudo|${{said#sudo: }}"; fi
"""
"""A script for bash. Each line of its output is a word and values, separated by bars."""

_USABLE = {"idle", "mixed", "allocated", "completing"}


@dataclass(frozen=True)
class Node:
    """A node of Slurm in one partition."""

    name: str
    state: str
    """As sinfo writes it, with the mark at its end: `~` is powered down, `*` does not answer."""
    gpus: int
    model: str = ""
    """Of the GPUs, as in Slurm's GRES, the first where there are several; empty where it has no type."""

    @property
    def is_up(self) -> bool:
        """True when a job could begin on it now, or when others have ended there."""
        return self.state.rstrip("+") in _USABLE

    @property
    def may_wake(self) -> bool:
        """True when Slurm would power it up for a job."""
        return self.state in ("idle~", "idle#", "idle%")


@dataclass(frozen=True)
class NodeSetFacts:
    """The nodes of a set, in a partition of which it is a part."""

    name: str
    partition: str
    nodes: tuple[Node, ...]
    others: tuple[str, ...]
    """The partition's nodes of other sets."""

    @property
    def up(self) -> list[Node]:
        """Those on which a job can run without waking them."""
        return [node for node in self.nodes if node.is_up]

    @property
    def gpus(self) -> int:
        """GPUs of each node."""
        return self.nodes[0].gpus

    @property
    def model(self) -> str:
        """Their model."""
        return self.nodes[0].model


@dataclass(frozen=True)
class Facts:
    """What the checks are chosen by."""

    user: str
    folder: str
    """A new folder in the user's home."""
    node_sets: tuple[NodeSetFacts, ...]
    default_partition: str
    has_accounting: bool
    tools: frozenset[str]
    sudo: str
    """Why the user is no admin; empty for an admin."""


@dataclass
class _Said:
    values: dict[str, str] = field(default_factory=dict[str, str])
    tools: set[str] = field(default_factory=set[str])
    partitions: dict[str, dict[str, Node]] = field(default_factory=dict[str, dict[str, Node]])
    default: str = ""


def read_facts(output: str) -> Facts:
    """The answer to QUESTION. Raises KeyError where it is not whole."""
    said = _Said()
    for line in output.splitlines():
        word, *values = line.split("|")
        if word == "node" and len(values) == 4:
            name, partition, state, gres = values
            if partition.endswith("*"):
                partition = said.default = partition.removesuffix("*")
            gpus = count_gpus(gres)
            said.partitions.setdefault(partition, {})[name] = Node(name, state, sum(gpus.values()), next(iter(gpus), ""))
        elif word == "tool":
            said.tools.update(values)
        elif values:
            said.values[word] = values[0]
    accounting = said.values["accounting"]
    return Facts(
        said.values["user"],
        said.values["folder"],
        tuple(_node_sets(said)),
        said.default,
        bool(accounting) and not accounting.endswith(("none", "(null)")),
        frozenset(said.tools),
        said.values["sudo"],
    )


def set_of(node: str) -> str:
    """The node set of a node: its name without the ordinal."""
    return node.rpartition("-")[0] or node


def _node_sets(said: _Said) -> Iterable[NodeSetFacts]:
    """Each set once, in the default partition where it is there, else in the first that has it."""
    seen: set[str] = set()
    for partition in sorted(said.partitions, key=lambda name: name != said.default):
        nodes = said.partitions[partition]
        for name in dict.fromkeys(map(set_of, nodes)):
            if name not in seen:
                seen.add(name)
                own = tuple(node for node in nodes.values() if set_of(node.name) == name)
                yield NodeSetFacts(name, partition, own, tuple(node for node in nodes if set_of(node) != name))
