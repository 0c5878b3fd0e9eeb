"""What the stack file says of keys of the whole cluster in slurm.conf, in slurm.settings or as raw lines. Decides nothing."""

from dataclasses import dataclass

from configs.models.cluster import Cluster
from configs.rules.slurm_types import unreadable
from configs.rules.slurm_words import GLOBAL_VALUES
from slurm.conf import known, pairs_of


@dataclass(frozen=True)
class Stated:
    """One key, as the user gave it."""

    path: str
    """The path of the key in the stack file."""
    value: str


def stated(cluster: Cluster) -> dict[str, Stated]:
    """By Slurm's spelling, each key with a value that Slurm can read; others are reported elsewhere. Settings win over raw lines."""
    lines = [(f"cluster.slurm.raw[{at}]", pairs_of(line) or []) for at, line in enumerate(cluster.slurm.raw)]
    settings = [(path, *pairs[0]) for path, pairs in reversed(lines) if len(pairs) == 1]
    settings += [(f"cluster.slurm.settings.{key}", key, value) for key, value in cluster.slurm.settings.items()]
    return {
        known(key, GLOBAL_VALUES) or key: Stated(path, value)
        for path, key, value in settings
        if unreadable(key, value, GLOBAL_VALUES) is None
    }
