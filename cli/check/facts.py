"""What a login session reports about the cluster: a script that asks, and its parsed answer."""

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
"""Waits until the user has an account, if jobs need one: in a new cluster, accounts appear seconds after slurmctld starts."""

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
"""A bash script. Each line of its output is a word and its values, separated by bars."""

_USABLE = {"idle", "mixed", "allocated", "completing"}


@dataclass(frozen=True)
class Node:
    """A node of Slurm in one partition."""

    name: str
    state: str
    """As sinfo writes it, with its suffix: `~` is powered down, `*` does not answer."""
    gpus: int
    model: str = ""
    """The GPU type in Slurm's GRES, the first if there are several; empty if there is none."""

    @property
    def is_up(self) -> bool:
        """True if a job can start on it now, or after other jobs have ended."""
        return self.state.rstrip("+") in _USABLE

    @property
    def may_wake(self) -> bool:
        """True if Slurm would power it up for a job."""
        return self.state in ("idle~", "idle#", "idle%")


@dataclass(frozen=True)
class NodeSetFacts:
    """The nodes of a set, in one of its partitions."""

    name: str
    partition: str
    nodes: tuple[Node, ...]
    others: tuple[str, ...]
    """The partition's nodes of other sets."""

    @property
    def up(self) -> list[Node]:
        """The nodes that need not be powered up for a job."""
        return [node for node in self.nodes if node.is_up]

    @property
    def gpus(self) -> int:
        """GPUs of each node."""
        return self.nodes[0].gpus

    @property
    def model(self) -> str:
        """The GPU type of the nodes."""
        return self.nodes[0].model


@dataclass(frozen=True)
class Facts:
    """What decides which checks run."""

    user: str
    folder: str
    """A new folder in the user's home."""
    node_sets: tuple[NodeSetFacts, ...]
    default_partition: str
    has_accounting: bool
    tools: frozenset[str]
    sudo: str
    """Why the user is not an admin; empty for an admin."""


@dataclass
class _Answer:
    values: dict[str, str] = field(default_factory=dict[str, str])
    tools: set[str] = field(default_factory=set[str])
    partitions: dict[str, dict[str, Node]] = field(default_factory=dict[str, dict[str, Node]])
    default: str = ""


def read_facts(output: str) -> Facts:
    """Parses the answer to QUESTION. Raises KeyError if it is incomplete."""
    answer = _Answer()
    for line in output.splitlines():
        word, *values = line.split("|")
        if word == "node" and len(values) == 4:
            name, partition, state, gres = values
            if partition.endswith("*"):
                partition = answer.default = partition.removesuffix("*")
            gpus = count_gpus(gres)
            answer.partitions.setdefault(partition, {})[name] = Node(name, state, sum(gpus.values()), next(iter(gpus), ""))
        elif word == "tool":
            answer.tools.update(values)
        elif values:
            answer.values[word] = values[0]
    accounting = answer.values["accounting"]
    return Facts(
        answer.values["user"],
        answer.values["folder"],
        tuple(_node_sets(answer)),
        answer.default,
        bool(accounting) and not accounting.endswith(("none", "(null)")),
        frozenset(answer.tools),
        answer.values["sudo"],
    )


def set_of(node: str) -> str:
    """The node set of a node: its name without the ordinal."""
    return node.rpartition("-")[0] or node


def _node_sets(answer: _Answer) -> Iterable[NodeSetFacts]:
    """Each set once, in the default partition if that has it, else in its first partition."""
    seen: set[str] = set()
    for partition in sorted(answer.partitions, key=lambda name: name != answer.default):
        nodes = answer.partitions[partition]
        for name in dict.fromkeys(map(set_of, nodes)):
            if name not in seen:
                seen.add(name)
                own_nodes = tuple(node for node in nodes.values() if set_of(node.name) == name)
                yield NodeSetFacts(name, partition, own_nodes, tuple(node for node in nodes if set_of(node) != name))
