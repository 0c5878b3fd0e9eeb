"""The argument of the collector; components/metrics.py writes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slurm.retelling import UNKNOWN_AFTER_S

Checks = Mapping[str, Mapping[str, str]]
"""Node set to its health checks, each with the runs that renew its result: `interval` or `job`.

It is empty for a check that only runs before or after jobs and reports a pass once.
"""


@dataclass(frozen=True)
class Settings:
    """What the collector reads, and how often."""

    accounting: bool
    """True: slurmdbd has the ended jobs, and TRES count GPUs."""
    accounts: int
    """Number of accounts with their own series. The others are summed up."""
    checks: Checks
    unknown_after_s: float = UNKNOWN_AFTER_S
    """Seconds without a report after which a check at an interval is unknown on a node."""
    checks_collector: tuple[str, int] | None = None
    """Host and port of the collector of checks beside jobs; None if there are no such checks."""
    interval_s: float = 15
    """Seconds between two readings of slurmctld. The pause after a slow reading is longer (slurm/ended.py)."""
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
    """Reads what `to_json` wrote."""
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
