"""The settings of the program for EC2, all from its environment, which components/ec2.py sets. All faults are reported at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controllers.runtime.environment import CLUSTER, Environment, ProgramSettings, program_variables, without_defaults
from names import ports, variables

ACTIONS = {"RebootMachine": "RebootInstances", "ReplaceMachine": "TerminateInstances"}
"""The action of EC2 for each step of a repair."""
STEPS_PATH = "/steps"
"""Where the program takes requests for steps."""


@dataclass(frozen=True, kw_only=True)
class Settings(ProgramSettings):
    """For one Slurm cluster in one namespace."""

    region: str
    token: Path
    """File with the token that requests must have."""
    steps: tuple[str, ...] = ()
    """The steps of repairs that may be asked for."""
    labels_places: bool = False
    """True: machines get labels with their place in EC2's network."""
    every_s: int = 60
    grace_s: int = 300
    max_per_hour: int = 10
    requests_port: int = ports.EC2


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables of these settings."""
    return {
        **program_variables(settings),
        variables.TOKEN: str(settings.token),
        variables.EVERY_S: str(settings.every_s),
        variables.GRACE_S: str(settings.grace_s),
        variables.MAX_PER_HOUR: str(settings.max_per_hour),
        variables.REQUESTS_PORT: str(settings.requests_port),
        **without_defaults(
            {
                variables.TOPOLOGY_LABELS: ("true" if settings.labels_places else "", ""),
                variables.STEPS: (",".join(settings.steps), ""),
            }
        ),
        variables.AWS_REGION: settings.region,
    }


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    reader = Environment(environment)
    reader.need({**CLUSTER, **_NEEDED})
    steps = tuple(filter(None, reader.text(variables.STEPS).split(",")))
    reader.faults += [f"{variables.STEPS} has {step!r}: {' or '.join(ACTIONS)} is wanted" for step in steps if step not in ACTIONS]
    settings = Settings(
        cluster=reader.text(variables.CLUSTER),
        namespace=reader.text(variables.NAMESPACE),
        region=reader.text(variables.AWS_REGION),
        token=Path(reader.text(variables.TOKEN)),
        steps=steps,
        labels_places=bool(reader.text(variables.TOPOLOGY_LABELS)),
        every_s=reader.whole(variables.EVERY_S, Settings.every_s),
        grace_s=reader.whole(variables.GRACE_S, Settings.grace_s),
        max_per_hour=reader.whole(variables.MAX_PER_HOUR, Settings.max_per_hour),
        requests_port=reader.whole(variables.REQUESTS_PORT, Settings.requests_port),
        port=reader.port(),
        probe_port=reader.probe_port(),
        log_level=reader.log_level(),
    )
    reader.check()
    return settings


_NEEDED = {
    variables.AWS_REGION: "the region of the machines, such as eu-west-1",
    variables.TOKEN: "file with the token that requests must have",
}
