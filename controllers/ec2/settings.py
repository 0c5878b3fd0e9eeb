"""What the Deployment tells the program, all of it in its environment. Every fault at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACTIONS = {"RebootMachine": "RebootInstances", "ReplaceMachine": "TerminateInstances"}
"""What EC2 is asked for at each step of a repair."""


class SettingsError(Exception):
    """The environment is not what the program needs; the text has a line for each fault."""


@dataclass(frozen=True)
class Settings:
    """For one Slurm cluster in one namespace."""

    cluster: str
    namespace: str
    region: str
    token: Path
    """File with the token that requests must have."""
    steps: tuple[str, ...] = ()
    """The steps of repairs that may be asked for."""
    every_s: int = 60
    grace_s: int = 300
    max_per_hour: int = 10
    port: int = 8080
    """Of probes and metrics."""
    requests_port: int = 8081


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    faults = [f"{name} is not set: {what}" for name, what in _NEEDED.items() if not environment.get(name)]
    numbers: dict[str, int] = {}
    for name, default in _NUMBERS.items():
        text = environment.get(name, str(default))
        if text.isdigit():
            numbers[name] = int(text)
        else:
            faults.append(f"{name} is {text!r}: a number is wanted")
    steps = tuple(filter(None, environment.get("SLIPWAY_STEPS", "").split(",")))
    faults += [f"SLIPWAY_STEPS has {step!r}: {' or '.join(ACTIONS)} is wanted" for step in steps if step not in ACTIONS]
    if faults:
        raise SettingsError("\n".join(faults))
    return Settings(
        cluster=environment["SLIPWAY_CLUSTER"],
        namespace=environment["SLIPWAY_NAMESPACE"],
        region=environment["AWS_REGION"],
        token=Path(environment["SLIPWAY_TOKEN"]),
        steps=steps,
        every_s=numbers["SLIPWAY_EVERY_S"],
        grace_s=numbers["SLIPWAY_GRACE_S"],
        max_per_hour=numbers["SLIPWAY_MAX_PER_HOUR"],
        port=numbers["SLIPWAY_PORT"],
        requests_port=numbers["SLIPWAY_REQUESTS_PORT"],
    )


_NEEDED = {
    "SLIPWAY_CLUSTER": "name of the Slurm cluster",
    "SLIPWAY_NAMESPACE": "its Kubernetes namespace",
    "AWS_REGION": "the region of the machines, such as eu-west-1",
    "SLIPWAY_TOKEN": "file with the token that requests must have",
}
_NUMBERS = {
    "SLIPWAY_EVERY_S": 60,
    "SLIPWAY_GRACE_S": 300,
    "SLIPWAY_MAX_PER_HOUR": 10,
    "SLIPWAY_PORT": 8080,
    "SLIPWAY_REQUESTS_PORT": 8081,
}
