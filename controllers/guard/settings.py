"""What the Deployment tells the guard, all of it in its environment. Every fault at once."""

from collections.abc import Mapping
from dataclasses import dataclass


class SettingsError(Exception):
    """The environment is not what the program needs; the text has a line for each fault."""


@dataclass(frozen=True)
class Settings:
    """For one Slurm cluster in one namespace."""

    cluster: str
    namespace: str
    identity: str
    """Name of this pod."""
    port: int = 8080
    """Of probes and metrics."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    faults = [f"{name} is not set: {what}" for name, what in _NEEDED.items() if not environment.get(name)]
    port = environment.get("SLIPWAY_PORT", "8080")
    if not port.isdigit():
        faults.append(f"SLIPWAY_PORT is {port!r}: a number is wanted")
    if faults:
        raise SettingsError("\n".join(faults))
    return Settings(environment["SLIPWAY_CLUSTER"], environment["SLIPWAY_NAMESPACE"], environment["POD_NAME"], int(port))


_NEEDED = {
    "SLIPWAY_CLUSTER": "name of the Slurm cluster",
    "SLIPWAY_NAMESPACE": "its Kubernetes namespace",
    "POD_NAME": "name of this pod",
}
