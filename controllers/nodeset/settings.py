"""What the Deployment tells the controller, all of it in its environment. Every fault at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controllers.nodeset.machines import Ec2Program


class SettingsError(Exception):
    """The environment is not what the program needs; the text has a line for each fault."""


@dataclass(frozen=True)
class Settings:
    """For one Slurm cluster in one namespace."""

    cluster: str
    namespace: str
    slurmrestd: str
    """URL of slurmrestd."""
    jwt_key: Path
    """File with the key that signs Slurm's tokens."""
    identity: str
    """Name of this pod: another for each process."""
    ec2: Ec2Program | None = None
    """The program that reboots and replaces machines, where the stack has one."""
    port: int = 8080
    """Of probes and metrics."""
    log_level: str = "info"
    writes_per_s: float = 200
    """To the API server, in the long run."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    faults = [f"{name} is not set: {what}" for name, what in _NEEDED.items() if not environment.get(name)]
    numbers: dict[str, float] = {}
    for name, default in (("SLIPWAY_PORT", 8080.0), ("SLIPWAY_WRITES_PER_S", 200.0)):
        try:
            numbers[name] = float(environment.get(name, default))
        except ValueError:
            faults.append(f"{name} is {environment[name]!r}: a number is wanted")
    level = environment.get("SLIPWAY_LOG_LEVEL", "info")
    if level not in ("debug", "info", "warning", "error"):
        faults.append(f"SLIPWAY_LOG_LEVEL is {level!r}: debug, info, warning or error is wanted")
    ec2, token = environment.get("SLIPWAY_EC2", ""), environment.get("SLIPWAY_EC2_TOKEN", "")
    if bool(ec2) != bool(token):
        faults.append("SLIPWAY_EC2 and SLIPWAY_EC2_TOKEN go together: the URL of the program for EC2, and the file with its token")
    if faults:
        raise SettingsError("\n".join(faults))
    return Settings(
        cluster=environment["SLIPWAY_CLUSTER"],
        namespace=environment["SLIPWAY_NAMESPACE"],
        slurmrestd=environment["SLIPWAY_SLURMRESTD"],
        jwt_key=Path(environment["SLIPWAY_JWT_KEY"]),
        identity=environment["POD_NAME"],
        ec2=Ec2Program(ec2, Path(token)) if ec2 else None,
        port=int(numbers["SLIPWAY_PORT"]),
        log_level=level,
        writes_per_s=numbers["SLIPWAY_WRITES_PER_S"],
    )


_NEEDED = {
    "SLIPWAY_CLUSTER": "name of the Slurm cluster",
    "SLIPWAY_NAMESPACE": "its Kubernetes namespace",
    "SLIPWAY_SLURMRESTD": "URL of slurmrestd, such as http://dev-slurmrestd.slurm:6820",
    "SLIPWAY_JWT_KEY": "file with the key that signs Slurm's tokens",
    "POD_NAME": "name of this pod",
}
