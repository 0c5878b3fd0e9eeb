"""From what a stack file says to a `Cluster`, or to all that is wrong with it. Reads only the key files that users name."""

from collections.abc import Mapping
from pathlib import Path

from configs.models import Cluster


def load_cluster(raw: Mapping[str, object], root: Path, stack_file: str) -> Cluster:
    """The cluster of the `slipway:cluster` object `raw`; paths in it are relative to `root`.

    Raises `configs.faults.ConfigFaults` with every fault at once.
    """
    cluster = Cluster.model_validate(raw)
    users = tuple(
        user.model_copy(
            update={
                "ssh_keys": user.ssh_keys + tuple(line for file in user.ssh_key_files for line in (root / file).read_text().splitlines())
            }
        )
        for user in cluster.login.users
    )
    return cluster.model_copy(update={"login": cluster.login.model_copy(update={"users": users})})
