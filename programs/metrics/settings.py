"""The argument of the collector; components/metrics.py writes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slurm.retelling import UNKNOWN_AFTER_S

Checks = Mapping[str, Mapping[str, str]]
"""By node set, the names of its health checks, each with the runs that renew a result: `interval`, `job`, or an empty text for a check that
runs only before or after jobs, which reports a pass once."""


@dataclass(frozen=True)
class Settings:
    """What the collector reads, and how often."""

    accounting: bool
    """True: slurmdbd has the jobs that ended, and TRES count GPUs."""
    accounts: int
    """Accounts with series of their own; the others are summed up."""
    checks: Checks
    unknown_after_s: float = UNKNOWN_AFTER_S
    """Seconds after which a check at an interval that has told nothing of a node is unknown there."""
    checks_collector: tuple[str, int] | None = None
    """Host and port of the program that notes what checks beside jobs find; None where there are no such checks."""
    interval_s: float = 15
    """Seconds between two readings of slurmctld; a slow reading makes its own pause longer (readings.py)."""
    accounting_interval_s: float = 60
    """Seconds between two readings of slurmdbd."""


def to_json(settings: Settings) -> str:
    """The argument."""
    return json.dumps(
        {
            "accounting": settings.accounting,
            "accounts": settings.accounts,
            "checks": settings.checks,
            "unknownAfterS": settings.unknown_after_s,
            "checksCollector": settings.checks_collector,
            "intervalS": settings.interval_s,
            "accountingIntervalS": settings.accounting_interval_s,
        },
        sort_keys=True,
    )


def from_json(text: str) -> Settings:
    """What `to_json` has written."""
    values: dict[str, Any] = json.loads(text)
    return Settings(
        accounting=values["accounting"],
        accounts=values["accounts"],
        checks=values["checks"],
        unknown_after_s=values["unknownAfterS"],
        checks_collector=tuple(values["checksCollector"]) if values["checksCollector"] else None,
        interval_s=values["intervalS"],
        accounting_interval_s=values["accountingIntervalS"],
    )
