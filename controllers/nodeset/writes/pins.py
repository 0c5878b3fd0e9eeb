"""Writes down on which machines the pods of a pinned set run. Thin."""

from controllers.nodeset import pods as build
from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.pins import plan_pins
from controllers.nodeset.rounds import Round
from controllers.runtime.structs import CONFIG_MAPS


async def record_pins(round_: Round, observed: Observed) -> None:
    """Writes the record where it changed."""
    if round_.nodeset.metadata.deletion_timestamp is not None:
        return
    pins = pins_of(round_, observed)
    if pins != _recorded(round_):
        await round_.attempt("record of places", round_.world.writer.apply(CONFIG_MAPS, build.build_pins(round_.nodeset, pins)))


def pins_of(round_: Round, observed: Observed) -> dict[int, str]:
    """The machine of each ordinal of a pinned set."""

    def refusals(ordinal: int) -> int:
        return round_.world.refusals.failures(round_.key, ordinal)

    return plan_pins(round_.nodeset.spec, _recorded(round_), observed.pods, round_.world.machine, refusals)


def _recorded(round_: Round) -> dict[int, str]:
    record = round_.world.pins.get((round_.key[0], build.pins_name(round_.key[1])))
    return build.read_pins(record.data) if record is not None else {}
