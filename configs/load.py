"""From what a stack file says to a `Cluster`, or to all that is wrong with it. Reads nothing but the key files that users name."""

import json
from collections.abc import Mapping
from pathlib import Path

from configs.cluster_args import SlurmClusterArgs
from configs.faults import ConfigFaults, Fault, quoted
from configs.models.cluster import Cluster
from configs.rules.cluster import check_cluster, without_conclusions
from configs.rules.names import check_distinct, names_in
from configs.rules.structure import ROOT, order_of, plain_data, read_structure
from configs.rules.users import key_mistake

_LARGEST_KEY_FILE = 65_536


def parse_cluster(text: str, stack_file: str) -> SlurmClusterArgs:
    """The `slipway:cluster` object as Pulumi hands it to the program: JSON, whatever the stack file's own form. Raises ConfigFaults."""
    try:
        return json.loads(text)  # load_cluster says what else may be wrong with it
    except RecursionError:
        raise ConfigFaults(
            stack_file, [Fault(ROOT, "is nested too deeply: no part of a cluster is more than a few levels deep.")]
        ) from None
    except ValueError:  # not JSON, or a number of thousands of digits
        message = f"{quoted(text)} is not a mapping of keys that can be read. Pulumi.dev.yaml is an example to start from."
        raise ConfigFaults(stack_file, [Fault(ROOT, message)]) from None


def load_cluster(raw: Mapping[str, object], root: Path, source: str) -> Cluster:
    """The cluster of the `slipway:cluster` object `raw`, which a user wrote in `source`. Paths of key files are relative to `root`.

    Raises `configs.faults.ConfigFaults` with all faults.
    """
    data, unreadable = plain_data(raw)
    if any(fault.path == ROOT for fault in unreadable) and not data:
        raise ConfigFaults(source, unreadable)
    names = names_in(data)
    shaped, misshapen = read_structure(data)
    cluster, missing = _with_key_files(shaped, root)
    broken = [*unreadable, *misshapen]
    faults = [*broken, *without_conclusions([*missing, *check_cluster(cluster, names)], broken)]
    if faults:
        raise ConfigFaults(source, sorted(faults, key=lambda fault: order_of(fault.path)))
    return cluster


def _with_key_files(cluster: Cluster, root: Path) -> tuple[Cluster, list[Fault]]:
    """The cluster with the keys of all key files among `ssh_keys`, and the faults of these files."""
    faults: list[Fault] = []
    users = list(cluster.login.users)
    for at, user in enumerate(users):
        keys = list(user.ssh_keys)
        faults += check_distinct(f"{ROOT}.login.users[{at}].sshKeys", keys)
        for position, name in enumerate(user.ssh_key_files):
            file_keys, mistake = _read_keys(root, name)
            keys += file_keys
            if mistake:
                faults.append(Fault(f"{ROOT}.login.users[{at}].sshKeyFiles[{position}]", mistake))
        users[at] = user.model_copy(update={"ssh_keys": tuple(dict.fromkeys(keys))})
    return cluster.model_copy(update={"login": cluster.login.model_copy(update={"users": tuple(users)})}), faults


def _read_keys(root: Path, name: str) -> tuple[list[str], str | None]:
    path = root / name
    try:
        if not path.is_file():
            private = name.removesuffix(".pub")
            return [], f"{quoted(name)} is not there. `make up` makes it for the dev stack; else: ssh-keygen -t ed25519 -f {private}"
        with path.open("rb") as file:
            text = file.read(_LARGEST_KEY_FILE).decode()
    except (OSError, ValueError) as error:
        return [], f"{quoted(name)} cannot be read as a file of public keys: {getattr(error, 'strerror', None) or 'it is not text'}."
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    if not lines:
        return [], f"{quoted(name)} holds no key."
    mistakes = [mistake for line in lines if (mistake := key_mistake(line))]
    return ([], f"{quoted(name)}: {mistakes[0]}") if mistakes else (lines, None)
