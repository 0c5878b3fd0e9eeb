"""The file of receivers that `notify` reads in each round; components/notify.py writes it."""

import json
from collections.abc import Iterable
from typing import Any

from slurm.records import record

_OF_JOBS = frozenset({"jobEnd", "jobFail", "jobRequeue"})
_OF_NODES = frozenset({"nodeDrain", "nodeResume"})


@record
class Receiver:
    """A webhook or some mail addresses, and the news that they get."""

    name: str
    kind: str
    """slack, webhook or mail."""
    to: tuple[str, ...]
    """Mail addresses."""
    events: frozenset[str]
    accounts: frozenset[str]
    """Empty means all; so do `users` and `partitions`."""
    users: frozenset[str]
    partitions: frozenset[str]
    only_asked: bool
    """True: only jobs whose comment names this receiver."""

    @property
    def wants_jobs(self) -> bool:
        return not self.events.isdisjoint(_OF_JOBS)

    @property
    def wants_nodes(self) -> bool:
        return not self.events.isdisjoint(_OF_NODES)


def to_json(receivers: Iterable[Receiver]) -> str:
    """The content of the file. Sets are sorted."""
    written = [
        {
            "name": receiver.name,
            "kind": receiver.kind,
            "to": receiver.to,
            "events": sorted(receiver.events),
            "accounts": sorted(receiver.accounts),
            "users": sorted(receiver.users),
            "partitions": sorted(receiver.partitions),
            "onlyAsked": receiver.only_asked,
        }
        for receiver in receivers
    ]
    return json.dumps(written, indent=1)


def from_json(text: str) -> tuple[Receiver, ...]:
    """Reads what `to_json` wrote. Raises ValueError, KeyError and TypeError for any other text."""
    return tuple(_receiver(values) for values in json.loads(text))


def _receiver(values: Any) -> Receiver:
    return Receiver(
        name=values["name"],
        kind=values["kind"],
        to=tuple(values["to"]),
        events=frozenset(values["events"]),
        accounts=frozenset(values["accounts"]),
        users=frozenset(values["users"]),
        partitions=frozenset(values["partitions"]),
        only_asked=bool(values["onlyAsked"]),
    )
