"""Which updates one scontrol can read as lines, and what is left to write after some were refused."""

import pytest

from programs.node_checks.updates import MOST_LINES, Update, alone, in_lots
from slurm.scontrol import Node
from slurm.states import node_state

EXTRA = '{"slipway":{"mounts":{"failure":{"found":"/home is not mounted"}}}}'


@pytest.mark.parametrize(
    ("update", "line"),
    [
        pytest.param(Update(("gpu-0", "gpu-1"), EXTRA), f"update NodeName=gpu-0,gpu-1 Extra={EXTRA}", id="spaces-within-json"),
        pytest.param(Update(("gpu-0",), "{}"), "update NodeName=gpu-0 Extra={}", id="nothing-noted"),
        pytest.param(
            Update(("gpu-0",), drain="slipway: check disk: 3 % free"),
            'update NodeName=gpu-0 State=DRAIN Reason="slipway: check disk: 3 % free"',
            id="drain",
        ),
        pytest.param(
            Update(("gpu-0",), '{"mine":"it is \'so\' here"}'), 'update NodeName=gpu-0 Extra={"mine":"it is \'so\' here"}', id="apostrophes"
        ),
        pytest.param(Update(("gpu-0",), '{"mine":"a \\"b c\\" d"}'), None, id="quotes-within-a-text"),
        pytest.param(Update(("gpu-0",), '{"mine": 1}'), None, id="spaces-outside-of-texts"),
        pytest.param(Update(("gpu-0",), '{"mine":"a\tb"}'), None, id="a-tab-completes"),
        pytest.param(Update(("gpu-0",), '{"mine":"a\nb"}'), None, id="line-end"),
        pytest.param(Update(("gpu-0",), '{"mine":"caf\u00e9"}'), None, id="not-ascii"),
        pytest.param(Update(("gpu-0",), f'{{"mine":"{"x" * 20_000}"}}'), None, id="too-long"),
        pytest.param(Update(("gpu-0",), drain='my "own" words'), None, id="quotes-in-a-reason"),
    ],
)
def test_update_is_one_line_where_scontrol_reads_it_as_it_is_meant(update: Update, line: str | None) -> None:
    assert update.line == line
    assert alone([update]) == ([] if line else [update])


def test_words_of_a_process_need_no_quotes() -> None:
    assert Update(("a-0",), "{}", "x y").words() == ["NodeName=a-0", "Extra={}", "State=DRAIN", "Reason=x y"]


def test_lots_are_bounded() -> None:
    updates = [Update((f"gpu-{at}",), EXTRA) for at in range(1000)]
    lots = in_lots(updates)
    assert [update for lot in lots for update in lot] == updates
    assert max(map(len, lots)) == MOST_LINES


@pytest.mark.parametrize(
    ("update", "missing"),
    [
        pytest.param(Update(("a-0", "a-1"), EXTRA), [Update(("a-1",), EXTRA)], id="one-node-does-not-have-it"),
        pytest.param(Update(("a-0", "a-9"), EXTRA), [Update(("a-9",), EXTRA)], id="node-is-gone"),
        pytest.param(Update(("a-1",), drain="x"), [], id="drained"),
        pytest.param(Update(("a-0",), EXTRA, "x"), [Update(("a-0",), EXTRA, "x")], id="noted-and-not-drained"),
        pytest.param(Update(("a-0",), EXTRA), [], id="all-is-there"),
    ],
)
def test_what_is_left_is_read_from_slurm(update: Update, missing: list[Update]) -> None:
    nodes = {"a-0": Node("a-0", node_state(["IDLE"]), extra=EXTRA), "a-1": Node("a-1", node_state(["IDLE", "DRAIN"]), extra="{}")}
    assert list(update.missing(nodes)) == missing
