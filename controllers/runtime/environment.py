"""The settings that a Deployment passes in the environment, and the start of every program of controllers/."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from controllers.runtime import log
from names import ports, variables
from slurm import logs

CLUSTER = {variables.CLUSTER: "name of the Slurm cluster", variables.NAMESPACE: "its Kubernetes namespace"}
POD = {"POD_NAME": "name of this pod"}
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
        """The default, and a fault, if the variable is no number."""
        try:
            return float(self._variables.get(name, default))
        except ValueError:
            self.faults.append(f"{name} is {self._variables[name]!r}: a number is wanted")
            return default

    def whole(self, name: str, default: int) -> int:
        """The default, and a fault, if the variable is no whole number."""
        text = self._variables.get(name, str(default))
        if text.isdecimal():
            return int(text)
        self.faults.append(f"{name} is {text!r}: a number is wanted")
        return default

    def port(self) -> int:
        """SLIPWAY_PORT."""
        return self.whole(variables.PORT, ports.CONTROLLER)

    def probe_port(self) -> int:
        """SLIPWAY_PROBE_PORT."""
        return self.whole(variables.PROBE_PORT, ports.PROBE)

    def log_level(self) -> str:
        """SLIPWAY_LOG_LEVEL."""
        level = self._variables.get(variables.LOG_LEVEL, "info")
        if level not in ("debug", "info", "warning", "error"):
            self.faults.append(f"{variables.LOG_LEVEL} is {level!r}: debug, info, warning or error is wanted")
        return level

    def check(self) -> None:
        """Raises SettingsError if there are faults."""
        if self.faults:
            raise SettingsError("\n".join(self.faults))


S = TypeVar("S", bound=ProgramSettings)


def main(program: str, read: Callable[[Mapping[str, str]], S], serve: Callable[[S], Coroutine[Any, Any, int]]) -> int:
    """Reads the settings and runs the program under this name in its log. Returns the exit code. 2: the environment is wrong."""
    try:
        settings = read(os.environ)
    except SettingsError as error:
        for fault in str(error).splitlines():
            logs.write(logs.line(program, fault, logs.ERROR))
        return 2
    log.configure(program, settings.log_level)
    return asyncio.run(serve(settings))
