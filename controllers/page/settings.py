"""The settings of the page, all from its environment, which components/page.py sets. All faults are reported at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controllers.runtime.environment import CLUSTER, SLURM, Environment, ProgramSettings, program_variables, without_defaults
from names import variables

HIDEABLE = frozenset({"jobs", "nodes"})
"""Values of Slurm's PrivateData that the page can hide."""


@dataclass(frozen=True, kw_only=True)
class Settings(ProgramSettings):
    """For one Slurm cluster in one namespace."""

    slurmrestd: str
    """URL of slurmrestd; the list of jobs is on the same host."""
    jwt_key: Path
    """File with the key that signs Slurm's tokens."""
    history: Path
    """File that keeps the last day while the container restarts."""
    hidden: frozenset[str] = frozenset()
    """Values of Slurm's PrivateData: what users must not see of each other. A subset of HIDEABLE."""
    hosts: tuple[str, ...] = ()
    """Host names that the page answers to, beside `localhost` and addresses."""


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables of these settings. Variables with their default value are left out."""
    return {
        **program_variables(settings),
        variables.SLURMRESTD: settings.slurmrestd,
        variables.JWT_KEY: str(settings.jwt_key),
        variables.HISTORY: str(settings.history),
        **without_defaults({variables.HOSTS: (",".join(settings.hosts), ""), variables.HIDDEN: (",".join(sorted(settings.hidden)), "")}),
    }


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError."""
    reader = Environment(environment)
    reader.need({**CLUSTER, **SLURM, variables.HISTORY: "file that keeps the last day"})
    hidden = frozenset(reader.text(variables.HIDDEN).split(",")) - {""}
    if unknown := hidden - HIDEABLE:
        reader.faults.append(f"{variables.HIDDEN} has {', '.join(sorted(unknown))}: only {' and '.join(sorted(HIDEABLE))} can be hidden")
    settings = Settings(
        cluster=reader.text(variables.CLUSTER),
        namespace=reader.text(variables.NAMESPACE),
        slurmrestd=reader.text(variables.SLURMRESTD),
        jwt_key=Path(reader.text(variables.JWT_KEY)),
        history=Path(reader.text(variables.HISTORY)),
        hidden=hidden,
        hosts=tuple(filter(None, reader.text(variables.HOSTS).lower().split(","))),
        port=reader.port(),
        probe_port=reader.probe_port(),
        log_level=reader.log_level(),
    )
    reader.check()
    return settings
