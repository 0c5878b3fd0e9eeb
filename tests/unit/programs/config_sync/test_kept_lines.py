"""The lines of nodes that keep their size, in files of any shape: ranges, several lines a node, other cases, quotes, comments, defaults.

test_sizes.py has files as Slipway renders them for two sets. These here are as varied as Slurm reads them, raw lines included.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.configuration import parse
from programs.config_sync.sizes import GRES_CONF, SLURM_CONF, find_resized, keep_sizes
from slurm.conf import SIZE_KEYS, known, pairs_of, setting
from slurm.hostlists import HostlistError, expand, fold

SETS = ("cpu", "gpu-b", "h100")
KINDS = ("gpu", "mps", "nic")
Body = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """Some nodes of a set that share a line in each file."""

    nodes: tuple[str, ...]
    cpus: str
    kinds: tuple[tuple[str, int], ...]
    reason: str
    is_lower: bool
    comment: str

    def node_line(self) -> str:
        pairs = [("NodeName", fold(self.nodes)), ("CPUs", self.cpus), ("RealMemory", "9000")]
        if self.kinds:
            pairs.append(("Gres", ",".join(f"{kind}:t:{count}" for kind, count in self.kinds)))
        if self.reason:
            pairs.append(("Reason", self.reason))
        return self._line([*pairs, ("State", "CLOUD")])

    def gres_lines(self) -> list[str]:
        return [
            self._line([("NodeName", fold(self.nodes)), ("Name", kind), ("Type", "t"), ("File", f"/dev/{kind}{device}")])
            for kind, count in self.kinds
            for device in range(count)
        ]

    def _line(self, pairs: list[tuple[str, str]]) -> str:
        words = [setting(key.lower() if self.is_lower else key, value) for key, value in pairs]
        return " ".join(words) + self.comment


@dataclass(frozen=True)
class Layout:
    """Two files: their parts, and what stands around them."""

    parts: tuple[Part, ...]
    limit: int
    has_defaults: bool
    ends: bool
    """With a newline."""

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.nodes)

    def files(self) -> dict[str, str]:
        kinds = sorted({kind for part in self.parts for kind, _ in part.kinds})
        lines = ["# Rendered; do not edit.", "ClusterName=t", "", f"MaxArraySize={self.limit} # so many"]
        lines += [f"GresTypes={','.join(kinds)}"] * bool(kinds) + ["NodeName=DEFAULT State=CLOUD"] * self.has_defaults
        lines += [part.node_line() for part in self.parts]
        lines += ["NodeSet=all Nodes=ALL", f"PartitionName=main Nodes={fold(self.nodes)} Default=YES", f"PartitionName=p{self.limit}"]
        gres = [line for part in self.parts for line in part.gres_lines()]
        found = {SLURM_CONF: self._text(lines)}
        return found | ({GRES_CONF: self._text(["# Device files.", *gres])} if gres else {})

    def _text(self, lines: list[str]) -> str:
        return "\n".join(lines) + "\n" * self.ends


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    parts: list[Part] = []
    for name in SETS:
        count = draw(st.integers(0 if name != "cpu" else 1, 6))
        cut = draw(st.integers(0, count))
        for ordinals in (range(cut), range(cut, count)):
            if not ordinals:
                continue
            kinds = draw(st.lists(st.sampled_from(KINDS), unique=True, max_size=2))
            parts.append(
                Part(
                    nodes=tuple(f"{name}-{ordinal}" for ordinal in ordinals),
                    cpus=draw(st.sampled_from(["1", "2"])),
                    kinds=tuple((kind, draw(st.integers(1, 3))) for kind in kinds),
                    reason=draw(st.sampled_from(["", "new", "new fans"])),
                    is_lower=draw(st.booleans()),
                    comment=draw(st.sampled_from(["", " # a note, NodeName=x"])),
                )
            )
    return Layout(tuple(draw(st.permutations(parts))), draw(st.integers(10, 12)), draw(st.booleans()), draw(st.booleans()))


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str], frozenset[str]]:
    """Files before and after, and some nodes of both."""
    old, new = draw(layouts()), draw(layouts())
    return old.files(), new.files(), frozenset(draw(st.sets(st.sampled_from(sorted(old.nodes & new.nodes)))))


def merge(old: Mapping[str, str], new: Mapping[str, str], nodes: frozenset[str]) -> dict[str, str]:
    return {**new, **keep_sizes(old, new, nodes)}


def named(line: str) -> tuple[list[str], Body]:
    """The nodes of a line, and what it says of them."""
    pairs = pairs_of(line) or []
    text = next((value for key, value in pairs if key.lower() == "nodename" and value != "DEFAULT"), "")
    return expand(text) if text else [], tuple((key.lower(), value) for key, value in pairs if key.lower() != "nodename")


def by_node(text: str) -> dict[str, list[Body]]:
    found: dict[str, list[Body]] = {}
    for names, body in map(named, text.splitlines()):
        for name in names:
            found.setdefault(name, []).append(body)
    return found


def others(text: str) -> list[str]:
    """All lines that name no node, but for the kinds of GRES."""
    return [line for line in text.splitlines() if not named(line)[0] and not line.lower().startswith("grestypes=")]


@given(changes())
def test_kept_nodes_have_all_of_their_old_lines_and_no_others(change: tuple[dict[str, str], dict[str, str], frozenset[str]]) -> None:
    old, new, nodes = change
    merged = merge(old, new, nodes)
    for name in (SLURM_CONF, GRES_CONF):
        before, after, found = (by_node(files.get(name, "")) for files in (old, new, merged))
        wanted = {node: (before if node in nodes else after).get(node, []) for node in before.keys() | after.keys()}
        assert found == {node: lines for node, lines in wanted.items() if lines and (node in nodes or node in after)}
    assert parse(merged[SLURM_CONF]).nodes.keys() == parse(new[SLURM_CONF]).nodes.keys()


@given(changes())
def test_all_other_lines_are_the_new_ones_in_their_order(change: tuple[dict[str, str], dict[str, str], frozenset[str]]) -> None:
    old, new, nodes = change
    merged = merge(old, new, nodes)
    assert others(merged[SLURM_CONF]) == others(new[SLURM_CONF])
    assert others(merged.get(GRES_CONF, "")) == others(new.get(GRES_CONF, ""))
    declared = {kind for key, value in parse(merged[SLURM_CONF]).settings.items() if key == "GresTypes" for kind in value.split(",")}
    used = {
        item.partition(":")[0]
        for (body,) in by_node(merged[SLURM_CONF]).values()
        for key, value in body
        if key == "gres"
        for item in value.split(",")
    }
    assert used <= declared
    assert sum(line.lower().startswith("grestypes=") for line in merged[SLURM_CONF].splitlines()) <= 1


@given(changes())
def test_merged_files_are_merged_only_once(change: tuple[dict[str, str], dict[str, str], frozenset[str]]) -> None:
    """The sidecar merges what it merged before whenever it tries the files again."""
    old, new, nodes = change
    merged = merge(old, new, nodes)
    assert merge(merged, new, nodes) == merged
    assert find_resized(merged[SLURM_CONF], new[SLURM_CONF]) == find_resized(old[SLURM_CONF], new[SLURM_CONF]) & nodes
    assert not find_resized(old[SLURM_CONF], merged[SLURM_CONF]) & nodes


@given(changes(), st.data())
def test_nodes_get_their_sizes_one_after_the_other(
    change: tuple[dict[str, str], dict[str, str], frozenset[str]], data: st.DataObject
) -> None:
    """First some nodes keep their lines, then fewer: the same as if only these had ever kept theirs."""
    old, new, nodes = change
    fewer = frozenset(node for node in sorted(nodes) if data.draw(st.booleans()))
    assert read(merge(merge(old, new, nodes), new, fewer)) == read(merge(old, new, fewer))


def read(files: Mapping[str, str]) -> list[dict[str, list[Body]]]:
    return [by_node(files.get(name, "")) for name in (SLURM_CONF, GRES_CONF)]


@given(changes())
def test_no_node_to_keep_leaves_the_files_to_the_letter(change: tuple[dict[str, str], dict[str, str], frozenset[str]]) -> None:
    old, new, _ = change
    assert keep_sizes(old, new, frozenset()) == {}
    assert merge(new, new, frozenset()) == new


@pytest.mark.parametrize("key", SIZE_KEYS)
def test_each_key_of_a_size_counts_in_any_case(key: str) -> None:
    assert find_resized(f"NodeName=a {key}=1\n", f"nodename=a {key.upper()}=2") == {"a"}
    assert find_resized(f"NodeName=a {key}=1\n", f"nodename=a {key.upper()}=1") == set()


@pytest.mark.parametrize(
    ("old", "new", "nodes", "merged"),
    [
        pytest.param("NodeName=a CPUs=1", "nodename=a cpus=2", {"a"}, "NodeName=a CPUs=1\n", id="another-case"),
        pytest.param("nodename=a cpus=1\n", "NodeName=a CPUs=2\n", {"a"}, "nodename=a cpus=1\n", id="another-case-before"),
        pytest.param("NodeName=a CPUs=1 # old", "NodeName=a CPUs=2 # new", {"a"}, "NodeName=a CPUs=1\n", id="comments-of-lines"),
        pytest.param("  NodeName = a  CPUs = 1", "NodeName=a CPUs=2", {"a"}, "NodeName=a CPUs=1\n", id="spaces"),
        pytest.param(
            "NodeName=g-[08-11] CPUs=1",
            "NodeName=g-[08-11] CPUs=2",
            {"g-09"},
            "NodeName=g-09 CPUs=1\nNodeName=g-08,g-[10-11] CPUs=2\n",
            id="zeros",
        ),
        pytest.param(
            "#NodeName=a CPUs=1\nNodeName=a CPUs=3",
            "# NodeName=a\nNodeName=a CPUs=2",
            {"a"},
            "# NodeName=a\nNodeName=a CPUs=3\n",
            id="commented",
        ),
        pytest.param(
            "NodeName=a CPUs=1", "X=1\n\n\nNodeName=a CPUs=2\n\nY=1", {"a"}, "X=1\n\n\nNodeName=a CPUs=1\n\nY=1\n", id="blank-lines"
        ),
        pytest.param('NodeName=a Reason="x = y"', "NodeName=a CPUs=2", {"a"}, 'NodeName=a Reason="x = y"\n', id="quoted-pair"),
    ],
)
def test_merged_text(old: str, new: str, nodes: set[str], merged: str) -> None:
    assert merge({SLURM_CONF: old}, {SLURM_CONF: new}, frozenset(nodes)) == {SLURM_CONF: merged}


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        pytest.param({GRES_CONF: "NodeName=a,b Name=gpu\n"}, {}, {GRES_CONF: "NodeName=a Name=gpu\n"}, id="goes"),
        pytest.param({}, {GRES_CONF: "NodeName=a,b Name=gpu\n"}, {GRES_CONF: "NodeName=b Name=gpu\n"}, id="comes"),
        pytest.param({}, {GRES_CONF: "NodeName=a Name=gpu\n"}, {GRES_CONF: ""}, id="comes-for-kept-nodes-only"),
        pytest.param(
            {GRES_CONF: "Name=gpu NodeName=a File=/dev/x0\nName=gpu NodeName=a File=/dev/x1"},
            {GRES_CONF: "AutoDetect=off\nName=gpu NodeName=a File=/dev/x9"},
            {GRES_CONF: "AutoDetect=off\nName=gpu NodeName=a File=/dev/x0\nName=gpu NodeName=a File=/dev/x1\n"},
            id="other-devices",
        ),
        pytest.param({}, {}, {}, id="never-there"),
    ],
)
def test_gres_conf(old: dict[str, str], new: dict[str, str], merged: dict[str, str]) -> None:
    assert merge(old, new, frozenset({"a"})) == {**merged, **({SLURM_CONF: new[SLURM_CONF]} if SLURM_CONF in new else {})}


def test_ten_thousand_alternating_nodes_make_two_ranges_per_file() -> None:
    nodes = frozenset(f"a-{ordinal}" for ordinal in range(0, 10_000, 2))
    old, new = (
        {SLURM_CONF: f"NodeName=a-[0-9999] CPUs={n} Gres=gpu:{n}\n", GRES_CONF: f"NodeName=a-[0-9999] Name=gpu Count={n}\n"} for n in (1, 2)
    )
    merged = merge(old, new, nodes)
    assert [len(text.splitlines()) for text in merged.values()] == [3, 2]
    assert all(len(text) < 10_000 * len("9999,") + 100 for text in merged.values())
    assert find_resized(merged[SLURM_CONF], new[SLURM_CONF]) == nodes


DEFAULTS = "NodeName=g-0 CPUs={}\nNodeName=DEFAULT CPUs=4\nNodeName=x RealMemory={}\n"


def effective(text: str) -> dict[str, dict[str, str]]:
    """By node: its size as Slurm has it, with what a line of NodeName=DEFAULT above it says."""
    defaults, found = dict[str, str](), dict[str, dict[str, str]]()
    for line in text.splitlines():
        pairs = pairs_of(line) or []
        if not pairs or known(pairs[0][0], ("NodeName",)) is None:
            continue
        size = {key: value for given, value in pairs if (key := known(given, SIZE_KEYS))}
        if pairs[0][1] == "DEFAULT":
            defaults |= size
        else:
            found |= {name: {**defaults, **size} for name in expand(pairs[0][1])}
    return found


def test_kept_line_stays_below_the_defaults_that_it_had() -> None:
    """A raw line of a node next to a set: both get another size."""
    old, new = DEFAULTS.format(1, 1000), DEFAULTS.format(2, 2000)
    merged = merge({SLURM_CONF: old}, {SLURM_CONF: new}, frozenset({"g-0", "x"}))
    assert effective(merged[SLURM_CONF]) == effective(old)


def test_node_whose_defaults_change_keeps_its_size() -> None:
    old, new = "NodeName=DEFAULT CPUs=1\nNodeName=x RealMemory=1\n", "NodeName=DEFAULT CPUs=2\nNodeName=x RealMemory=2\n"
    merged = merge({SLURM_CONF: old}, {SLURM_CONF: new}, find_resized(old, new))
    assert effective(merged[SLURM_CONF]) == effective(old)


def test_line_with_an_address_for_each_node_keeps_one_for_each() -> None:
    """Slurm refuses a line with more addresses than names; with as many in another order, it would dial the wrong machine."""
    old, new = ({SLURM_CONF: f"NodeName=x-[0-3] NodeAddr=10.0.0.[1-4] CPUs={cpus}\n"} for cpus in (1, 2))
    merged = merge(old, new, frozenset({"x-1"}))[SLURM_CONF]
    addresses: dict[str, str] = {}
    for names, body in map(named, merged.splitlines()):
        given = expand(dict(body)["nodeaddr"])
        assert len(given) == len(names), merged
        addresses |= dict(zip(names, given, strict=True))
    assert addresses == {f"x-{n}": f"10.0.0.{n + 1}" for n in range(4)}


def test_empty_value_does_not_swallow_the_next_key() -> None:
    old = 'NodeName=a Reason="" CPUs=1\n'
    merged = merge({SLURM_CONF: old}, {SLURM_CONF: "NodeName=a CPUs=2\n"}, frozenset({"a"}))
    assert by_node(merged[SLURM_CONF]) == by_node(old)


@pytest.mark.parametrize("text", ["a[0-1]b[0-1]", "a[", "a,"])
def test_names_that_only_slurm_expands_are_left_as_they_are(text: str) -> None:
    with pytest.raises(HostlistError):
        expand(text)
    new = f"NodeName={text} CPUs=2\nNodeName=z CPUs=2\n"
    assert f"NodeName={text} CPUs=2\n" in merge({SLURM_CONF: "NodeName=z CPUs=1\n"}, {SLURM_CONF: new}, frozenset({"z"}))[SLURM_CONF]
