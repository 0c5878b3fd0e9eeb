"""Which node or link is at fault, from tests of pairs alone: exactly those, in the promised rounds, and never a good node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks.pairs import PROOF, Pair, Verdict, pair, plan_pairs, rounds_needed, tournament, verdict
from slurm.check_results import FAILED, PASSED, UNKNOWN


def tell(nodes: list[str], faulty: set[str], links: set[Pair], lost: set[Pair] = frozenset(), turn: int = 0) -> tuple[Verdict, int]:  # type: ignore[assignment]
    """The verdict after all rounds, and how many there were. Tests of `lost` pairs give no answer."""
    tested: dict[Pair, str] = {}
    rounds = 0
    while planned := plan_pairs(nodes, tested, rounds, turn=turn):
        assert len({node for each in planned for node in each}) == 2 * len(planned), "pairs of a round are disjoint"
        assert not any(each in tested for each in planned), "no pair is tested twice"
        for each in planned:
            is_failing = each in links or not faulty.isdisjoint(each)
            tested[each] = UNKNOWN if each in lost else FAILED if is_failing else PASSED
        rounds += 1
    return verdict(nodes, tested), rounds


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[str], set[str], set[Pair]]:
    """Nodes, and within the bound of the promise: nodes at fault, and links, of which a good node has fewer than PROOF."""
    nodes = [f"n-{number}" for number in range(draw(st.integers(4, 60)))]
    most = (len(nodes) - 4) // 5
    faulty = draw(st.sets(st.sampled_from(nodes), max_size=most))
    links: set[Pair] = set()
    for one, other in draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=most - len(faulty))):
        used = [node for each in links for node in each]
        if one != other and not faulty & {one, other} and all(used.count(node) < PROOF - 1 for node in (one, other)):
            links.add(pair(one, other))
    return nodes, faulty, links


@given(networks(), st.integers(0, 100))
def test_nodes_at_fault_are_named_exactly_within_the_promised_rounds(network: tuple[list[str], set[str], set[Pair]], turn: int) -> None:
    nodes, faulty, links = network
    told, rounds = tell(nodes, faulty, links, turn=turn)
    assert set(told.faulty) == faulty
    assert told.good == set(nodes) - faulty
    assert not told.open
    assert told.links <= links
    assert rounds <= rounds_needed()


@given(st.integers(2, 24), st.data())
def test_link_at_fault_is_named_by_the_round_that_tests_it(count: int, data: st.DataObject) -> None:
    """A whole tournament tests each link once."""
    nodes = [f"n-{number}" for number in range(2 * count)]
    one, other = data.draw(st.sampled_from([(a, b) for a in nodes for b in nodes if a < b]))
    turns = [turn for turn in range(len(nodes) - 1) if pair(one, other) in tournament(nodes, turn)]
    assert len(turns) == 1
    told, _ = tell(nodes, set(), {pair(one, other)}, turn=turns[0])
    assert (told.links, told.faulty) == (({pair(one, other)}, {}) if count > 1 else (set(), {}))


@given(st.integers(2, 30), st.data())
def test_good_node_is_never_named_whatever_else_is_at_fault(count: int, data: st.DataObject) -> None:
    nodes = [f"n-{number}" for number in range(count)]
    pairs = [pair(a, b) for a in nodes for b in nodes if a < b]
    faulty = data.draw(st.sets(st.sampled_from(nodes)))
    matched = data.draw(st.permutations(nodes))
    links = {pair(one, other) for one, other in zip(matched[::2], matched[1::2], strict=False) if data.draw(st.booleans())}
    told, rounds = tell(nodes, faulty, links, data.draw(st.sets(st.sampled_from(pairs))), data.draw(st.integers(0, 9)))
    assert set(told.faulty) <= faulty
    assert told.good.isdisjoint(faulty)
    assert told.links <= links
    assert rounds <= rounds_needed()


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 33])
def test_tournament_brings_each_pair_together_once(count: int) -> None:
    nodes = [f"n-{number}" for number in range(count)]
    rounds = count - 1 + count % 2
    met = [each for round_ in range(rounds) for each in tournament(nodes, round_)]
    assert len(met) == len(set(met)) == count * (count - 1) // 2
    assert all(len(tournament(nodes, round_)) == count // 2 for round_ in range(rounds))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_nodes_to_tell_who_is_at_fault_name_nobody(count: int) -> None:
    nodes = [f"n-{number}" for number in range(count)]
    told, _ = tell(nodes, set(nodes[:1]), set())
    assert not told.faulty
    assert not told.links


def test_node_that_has_failed_with_one_good_node_alone_stays_open() -> None:
    """It may be that link."""
    told = verdict("abc", {("a", "b"): PASSED, ("b", "c"): FAILED})
    assert (told.faulty, told.links, told.open) == ({}, set(), {"c"})
