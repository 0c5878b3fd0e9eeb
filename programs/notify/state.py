"""The state between rounds, in one file on slurmctld's disk. Raises OSError.

It is written after the messages are queued: a round that is killed in between repeats its news, and loses none.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from names import paths
from programs.mail.spool import Spool
from slurm.ended import Gap
from slurm.records import record

from .nodes import Known
from .plan import Item
from .runs import Run

FOLDER = Path(paths.NOTIFY_STATE)
MOST_WAITING = 1000
"""Most messages that wait for one webhook."""
PAYLOAD = "payload"
"""Key of the post's body in a queued message."""


@record
class State:
    """How far Slurm is read, and what waits to be reported."""

    began: float
    """Runs that ended before are not reported. In seconds since 1970, as is `since`."""
    since: float
    """Ended runs are read up to this time."""
    seen: frozenset[tuple[str, str, int]] = frozenset()
    """Keys of read runs that the next reading may list again."""
    arrays: Mapping[str, Item] = {}
    nodes: Known | None = None
    """None before the first reading of nodes."""
    gap: Gap | None = None
    """The last outage of slurmdbd."""


def spool_of(webhook: str, folder: Path) -> Spool:
    """The spool of a webhook's messages."""
    return Spool(folder / webhook, MOST_WAITING)


def load(file: Path) -> State | None:
    """Reads the state; None if there is no file. Raises OSError, and ValueError for a file with other content."""
    try:
        values: dict[str, Any] = json.loads(file.read_text())
        known = values["nodes"]
        return State(
            float(values["began"]),
            float(values["since"]),
            frozenset((str(number), str(start), int(end)) for number, start, end in values["seen"]),
            {array: _item(item) for array, item in values["arrays"].items()},
            None if known is None else Known(dict(known["told"]), frozenset(known["seen"])),
            None if (gap := values.get("gap")) is None else Gap(float(gap["since"]), None if gap["over"] is None else float(gap["over"])),
        )
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is not a state: {error!r}") from None


def save(file: Path, state: State) -> None:
    """Writes the state, in one step. Raises OSError."""
    text = json.dumps(
        {
            "began": state.began,
            "since": state.since,
            "seen": sorted(state.seen),
            "arrays": {array: _plain(item) for array, item in state.arrays.items()},
            "gap": None if state.gap is None else {"since": state.gap.since, "over": state.gap.over},
            "nodes": None if state.nodes is None else {"told": dict(state.nodes.told), "seen": sorted(state.nodes.seen)},
        }
    )
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    draft.write_text(text)
    draft.replace(file)


def _plain(item: Item) -> dict[str, Any]:
    run = item.example
    return {
        "run": {
            "number": run.number,
            "state": run.state,
            "start": run.start,
            "end": run.end,
            "partition": run.partition,
            "account": run.account,
            "user": run.user,
            "asked": sorted(run.asked),
            "job": dict(run.job),
        },
        "states": dict(item.states),
        "since": item.since,
    }


def _item(values: Any) -> Item:
    run: dict[str, Any] = values["run"]
    run_fields: dict[str, Any] = {**run, "asked": frozenset(run["asked"])}
    return Item(Run(**run_fields), dict(values["states"]), float(values["since"]))
