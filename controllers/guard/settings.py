"""The settings of the guard, all from its environment, which components/guard.py sets. All faults are reported at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.runtime.environment import CLUSTER, POD, Environment, ProgramSettings, program_variables
from names import variables


@dataclass(frozen=True, kw_only=True)
class Settings(ProgramSettings):
    """For one Slurm cluster in one namespace."""

    identity: str = ""
    """Name of this pod, set by Kubernetes."""


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables of these settings, but for the pod's name. Variables with their default value are left out."""
    return program_variables(settings)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    reader = Environment(environment)
    reader.need({**CLUSTER, **POD})
    settings = Settings(
        cluster=reader.text(variables.CLUSTER),
        namespace=reader.text(variables.NAMESPACE),
        identity=reader.text(variables.POD_NAME),
        port=reader.port(),
        probe_port=reader.probe_port(),
        log_level=reader.log_level(),
    )
    reader.check()
    return settings
