"""The controller's settings, all from its environment. All faults are reported at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controllers.nodeset.machines import Ec2Program
from controllers.runtime.environment import CLUSTER, POD, SLURM, Environment, ProgramSettings
from names import variables


@dataclass(frozen=True, kw_only=True)
class Settings(ProgramSettings):
    """For one Slurm cluster in one namespace."""

    slurmrestd: str
    """URL of slurmrestd."""
    jwt_key: Path
    """File with the key that signs Slurm's tokens."""
    identity: str
    """Name of this pod: another for each process."""
    ec2: Ec2Program | None = None
    """The program that reboots and replaces machines, where the stack has one."""
    writes_per_s: float = 200
    """To the API server, in the long run."""


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
        identity=reader.text("POD_NAME"),
        ec2=Ec2Program(ec2, Path(token)) if ec2 else None,
        port=reader.port(),
        probe_port=reader.probe_port(),
        log_level=reader.log_level(),
        writes_per_s=reader.number(variables.WRITES_PER_S, 200),
    )
    reader.check()
    return settings
