"""What the Deployment tells the page, all of it in its environment. Every fault at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HIDEABLE = frozenset({"jobs", "nodes"})
"""What of Slurm's PrivateData the page can hide."""


class SettingsError(Exception):
    """The environment is not what the program needs; the text has a line for each fault."""


@dataclass(frozen=True)
class Settings:
    """For one Slurm cluster in one namespace."""

    cluster: str
    namespace: str
    slurmrestd: str
    """URL of slurmrestd; the list of jobs is on the same host."""
    jwt_key: Path
    """File with the key that signs Slurm's tokens."""
    history: Path
    """File that keeps the last day while the container restarts."""
    hidden: frozenset[str] = frozenset()
    """What users must not see of each other, of HIDEABLE: Slurm's PrivateData."""
    port: int = 8080


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    faults = [f"{name} is not set: {what}" for name, what in _NEEDED.items() if not environment.get(name)]
    port = environment.get("SLIPWAY_PORT", "8080")
    if not port.isdigit():
        faults.append(f"SLIPWAY_PORT is {port!r}: a number is wanted")
    hidden = frozenset(environment.get("SLIPWAY_HIDDEN", "").split(",")) - {""}
    if unknown := hidden - HIDEABLE:
        faults.append(f"SLIPWAY_HIDDEN has {', '.join(sorted(unknown))}: only {' and '.join(sorted(HIDEABLE))} can be hidden")
    if faults:
        raise SettingsError("\n".join(faults))
    return Settings(
        cluster=environment["SLIPWAY_CLUSTER"],
        namespace=environment["SLIPWAY_NAMESPACE"],
        slurmrestd=environment["SLIPWAY_SLURMRESTD"],
        jwt_key=Path(environment["SLIPWAY_JWT_KEY"]),
        history=Path(environment["SLIPWAY_HISTORY"]),
        hidden=hidden,
        port=int(port),
    )


_NEEDED = {
    "SLIPWAY_CLUSTER": "name of the Slurm cluster",
    "SLIPWAY_NAMESPACE": "its Kubernetes namespace",
    "SLIPWAY_SLURMRESTD": "URL of slurmrestd, such as http://dev-slurmrestd.slurm:6820",
    "SLIPWAY_JWT_KEY": "file with the key that signs Slurm's tokens",
    "SLIPWAY_HISTORY": "file that keeps the last day",
}
