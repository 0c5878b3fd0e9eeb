"""The settings that a Deployment passes to its program in the environment. Components import this with the settings of each program, so it
needs Python's own library alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from names import ports, variables

CLUSTER = {variables.CLUSTER: "name of the Slurm cluster", variables.NAMESPACE: "its Kubernetes namespace"}
POD = {variables.POD_NAME: "name of this pod"}
SLURM = {
    variables.SLURMRESTD: "URL of slurmrestd, such as http://dev-slurmrestd.slurm:6820",
    variables.JWT_KEY: "file with the key that signs Slurm's tokens",
}
"""Variables that several programs need, and their meanings."""


class SettingsError(Exception):
    """The environment lacks something, or is invalid; the text has a line for each fault."""


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """The settings of every program: one Slurm cluster in one namespace."""

    cluster: str
    namespace: str
    port: int = ports.CONTROLLER
    """Of metrics and pages."""
    probe_port: int = ports.PROBE
    """Of the kubelet's probes."""
    log_level: str = "info"


def program_variables(settings: ProgramSettings) -> dict[str, str]:
    """The variables that every program has. Defaults are left out."""
    return {
        variables.CLUSTER: settings.cluster,
        variables.NAMESPACE: settings.namespace,
        **without_defaults(
            {
                variables.PORT: (settings.port, ProgramSettings.port),
                variables.PROBE_PORT: (settings.probe_port, ProgramSettings.probe_port),
                variables.LOG_LEVEL: (settings.log_level, ProgramSettings.log_level),
            }
        ),
    }


def without_defaults(values: Mapping[str, tuple[Any, Any]]) -> dict[str, str]:
    """Variables whose value differs from the default. `values` maps a name to (value, default)."""
    return {name: str(value) for name, (value, default) in values.items() if value != default}


class Environment:
    """Reads variables and collects every fault, so that all of them are reported at once."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.faults: list[str] = []

    def need(self, needed: Mapping[str, str]) -> None:
        """Adds a fault for each variable that is unset or empty."""
        self.faults += [f"{name} is not set: {what}" for name, what in needed.items() if not self._variables.get(name)]

    def text(self, name: str, default: str = "") -> str:
        return self._variables.get(name, default)

    def number(self, name: str, default: float) -> float:
        """The default, and a fault, if the variable is not a number."""
        try:
            return float(self._variables.get(name, default))
        except ValueError:
            self.faults.append(f"{name} is {self._variables[name]!r}: a number is wanted")
            return default

    def whole(self, name: str, default: int) -> int:
        """The default, and a fault, if the variable is not a whole number."""
        text = self._variables.get(name, str(default))
        if text.isdecimal():
            return int(text)
        self.faults.append(f"{name} is {text!r}: a number is wanted")
        return default

    def port(self) -> int:
        """SLIPWAY_PORT."""
        return self.whole(variables.PORT, ProgramSettings.port)

    def probe_port(self) -> int:
        """SLIPWAY_PROBE_PORT."""
        return self.whole(variables.PROBE_PORT, ProgramSettings.probe_port)

    def log_level(self) -> str:
        """SLIPWAY_LOG_LEVEL."""
        level = self._variables.get(variables.LOG_LEVEL, ProgramSettings.log_level)
        if level not in ("debug", "info", "warning", "error"):
            self.faults.append(f"{variables.LOG_LEVEL} is {level!r}: debug, info, warning or error is wanted")
        return level

    def check(self) -> None:
        """Raises SettingsError if there are faults."""
        if self.faults:
            raise SettingsError("\n".join(self.faults))
