"""The controller's settings, all from its environment, which components/controllers.py sets. All faults are reported at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controllers.runtime.environment import CLUSTER, POD, SLURM, Environment, ProgramSettings, program_variables, without_defaults
from names import variables


@dataclass(frozen=True)
class Ec2Program:
    """Where our program for EC2 takes steps."""

    url: str
    token: Path
    """File with the token that shows it who asks."""


@dataclass(frozen=True, kw_only=True)
class Settings(ProgramSettings):
    """For one Slurm cluster in one namespace."""

    slurmrestd: str
    """URL of slurmrestd."""
    jwt_key: Path
    """File with the key that signs Slurm's tokens."""
    identity: str = ""
    """Name of this pod, set by Kubernetes. Each process has another."""
    ec2: Ec2Program | None = None
    """The program that reboots and replaces machines, where the stack has one."""
    writes_per_s: float = 200.0
    """To the API server, in the long run."""


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables of these settings, except the pod's name. Settings with their default are left out."""
    ec2 = settings.ec2
    return {
        **program_variables(settings),
        variables.SLURMRESTD: settings.slurmrestd,
        variables.JWT_KEY: str(settings.jwt_key),
        **({variables.EC2: ec2.url, variables.EC2_TOKEN: str(ec2.token)} if ec2 is not None else {}),
        **without_defaults({variables.WRITES_PER_S: (settings.writes_per_s, Settings.writes_per_s)}),
    }


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    reader = Environment(environment)
    reader.need({**CLUSTER, **SLURM, **POD})
    ec2, token = reader.text(variables.EC2), reader.text(variables.EC2_TOKEN)
    if bool(ec2) != bool(token):
        reader.faults.append(
            f"{variables.EC2} and {variables.EC2_TOKEN} go together: the URL of the program for EC2, and the file with its token"
        )
    settings = Settings(
        cluster=reader.text(variables.CLUSTER),
        namespace=reader.text(variables.NAMESPACE),
        slurmrestd=reader.text(variables.SLURMRESTD),
        jwt_key=Path(reader.text(variables.JWT_KEY)),
        identity=reader.text(variables.POD_NAME),
        ec2=Ec2Program(ec2, Path(token)) if ec2 else None,
        port=reader.port(),
        probe_port=reader.probe_port(),
        log_level=reader.log_level(),
        writes_per_s=reader.number(variables.WRITES_PER_S, Settings.writes_per_s),
    )
    reader.check()
    return settings
