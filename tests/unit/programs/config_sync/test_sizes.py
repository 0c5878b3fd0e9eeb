"""Files in which some nodes keep their size: what Slurm reads in them is what it has of these nodes, and what is new of all else."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.configuration import parse
from programs.config_sync.sizes import GRES_CONF, SLURM_CONF, find_resized, keep_sizes
from slurm.conf import pairs_of
from slurm.hostlists import expand, fold

SETS = ("cpu", "gpu")


@dataclass(frozen=True)
class Size:
    """What the lines of a set say of its nodes."""

    cpus: int
    gpus: int
    weight: int


@dataclass(frozen=True)
class Cluster:
    """Two sets, each with so many nodes of a size."""

    counts: tuple[int, int]
    sizes: tuple[Size, Size]
    limit: int

    def files(self) -> dict[str, str]:
        """As Slipway renders them: a line for each set, and a file without lines is not there."""
        lines = ["# Rendered.", "ClusterName=t", f"MaxArraySize={self.limit}"]
        gres: list[str] = []
        if any(size.gpus for size in self.sizes):
            lines.append("GresTypes=gpu")
        for name, count, size in zip(SETS, self.counts, self.sizes, strict=True):
            names = fold(f"{name}-{ordinal}" for ordinal in range(count))
            gpus = f" Gres=gpu:h100:{size.gpus}" if size.gpus else ""
            lines.append(f"NodeName={names} CPUs={size.cpus} RealMemory=1000{gpus} Weight={size.weight} State=CLOUD")
            if size.gpus:
                gres.append(f"NodeName={names} Name=gpu Type=h100 File=/dev/nvidia[0-{size.gpus - 1}]")
        lines += ["", "PartitionName=main Nodes=ALL Default=YES"]
        found = {SLURM_CONF: "\n".join([*lines, ""])}
        return found | ({GRES_CONF: "\n".join([*gres, ""])} if gres else {})

    def names(self) -> list[str]:
        return [f"{name}-{ordinal}" for name, count in zip(SETS, self.counts, strict=True) for ordinal in range(count)]


sizes = st.builds(Size, st.sampled_from([1, 2]), st.sampled_from([0, 4, 8]), st.sampled_from([1, 5]))
counts = st.integers(1, 12)
clusters = st.builds(Cluster, st.tuples(counts, counts), st.tuples(sizes, sizes), st.integers(10, 12))


def devices(files: dict[str, str]) -> dict[str, list[tuple[tuple[str, str], ...]]]:
    """By node: the lines of gres.conf that are about it, without its name."""
    found: dict[str, list[tuple[tuple[str, str], ...]]] = {}
    for line in files.get(GRES_CONF, "").splitlines():
        (_, names), *rest = pairs_of(line) or [("", "")]
        for name in expand(names):
            found.setdefault(name, []).append(tuple(rest))
    return found


@given(clusters, clusters, st.data())
def test_kept_nodes_have_their_old_lines_and_all_else_is_new(old: Cluster, new: Cluster, data: st.DataObject) -> None:
    both = sorted({*old.names()} & {*new.names()})
    kept = frozenset(data.draw(st.sets(st.sampled_from(both))))
    before, after = old.files(), new.files()
    merged = {**after, **keep_sizes(before, after, kept)}
    had, wanted, found = (parse(files[SLURM_CONF]) for files in (before, after, merged))
    assert found.nodes == {name: (had if name in kept else wanted).nodes[name] for name in wanted.nodes}
    lines = [line for line in merged[SLURM_CONF].splitlines() if line.startswith("NodeName")]
    assert sum(len(_names(line)) for line in lines) == len(found.nodes)
    assert (found.partitions, found.others) == (wanted.partitions, wanted.others)
    assert {**found.settings, "GresTypes": ""} == {**wanted.settings, "GresTypes": ""}
    assert "GresTypes" in found.settings or not any("Gres" in line for line in found.nodes.values())
    both_devices = {name: (devices(before) if name in kept else devices(after)).get(name, []) for name in wanted.nodes}
    assert devices(merged) == {name: lines for name, lines in both_devices.items() if lines}
    assert {**after, **keep_sizes(merged, after, kept)} == merged
    assert find_resized(merged[SLURM_CONF], after[SLURM_CONF]) == find_resized(before[SLURM_CONF], after[SLURM_CONF]) & kept


@given(clusters, clusters)
def test_only_sizes_make_a_node_another_one(old: Cluster, new: Cluster) -> None:
    before, after = (dict(zip(SETS, cluster.sizes, strict=True)) for cluster in (old, new))
    other = {name for name in SETS if (before[name].cpus, before[name].gpus) != (after[name].cpus, after[name].gpus)}
    found = find_resized(old.files()[SLURM_CONF], new.files()[SLURM_CONF])
    assert found == {name for name in {*old.names()} & {*new.names()} if name.rpartition("-")[0] in other}


@pytest.mark.parametrize(
    ("old", "new", "resized"),
    [
        pytest.param("NodeName=a CPUs=1", "NodeName=a CPUs=2", {"a"}, id="more-cpus"),
        pytest.param("NodeName=a CPUs=1", "nodename=a cpus=1", set[str](), id="another-case"),
        pytest.param("NodeName=a CPUs=1", "NodeName=a CPUs=1 Weight=3", set[str](), id="another-weight"),
        pytest.param("NodeName=a CPUs=1", "NodeName=a CPUs=1 Gres=gpu:2", {"a"}, id="new-gpus"),
        pytest.param("NodeName=a RealMemory=9", "NodeName=a RealMemory=8", {"a"}, id="less-memory"),
        pytest.param("NodeName=a CPUs=1", "NodeName=b CPUs=2", set[str](), id="another-node"),
        pytest.param("NodeName=a-[0-1] CPUs=1", "NodeName=a-0 CPUs=1\nNodeName=a-1 CPUs=2", {"a-1"}, id="a-line-that-is-split"),
        pytest.param("NodeName=DEFAULT CPUs=1\nNodeName=a", "NodeName=DEFAULT CPUs=2\nNodeName=a", {"a"}, id="other-defaults"),
        pytest.param("NodeName=a[0-1]b[0-1] CPUs=1", "NodeName=a[0-1]b[0-1] CPUs=2", set[str](), id="names-that-only-slurm-expands"),
        pytest.param("", "NodeName=a CPUs=2", set[str](), id="no-files-before"),
    ],
)
def test_resized(old: str, new: str, resized: set[str]) -> None:
    assert find_resized(old, new) == resized


def test_kind_of_gpu_that_goes_stays_listed_while_a_node_has_it() -> None:
    old = {SLURM_CONF: "GresTypes=gpu\nNodeName=a Gres=gpu:4\n", GRES_CONF: "NodeName=a Name=gpu File=/dev/nvidia[0-3]\n"}
    new = {SLURM_CONF: "GresTypes=mic\nNodeName=a Gres=mic:1\n"}
    kept = keep_sizes(old, new, frozenset({"a"}))
    assert kept[SLURM_CONF] == "GresTypes=mic,gpu\nNodeName=a Gres=gpu:4\n"
    assert kept[GRES_CONF] == old[GRES_CONF]
    assert keep_sizes(old, {SLURM_CONF: "NodeName=a CPUs=1\n"}, frozenset({"a"}))[SLURM_CONF].startswith("GresTypes=gpu\n")


def test_values_with_spaces_are_kept_as_slurm_reads_them() -> None:
    old, new = 'NodeName=a CPUs=1 Reason="new fans"\n', "NodeName=a,b CPUs=2"
    assert keep_sizes({SLURM_CONF: old}, {SLURM_CONF: new}, frozenset({"a"})) == {SLURM_CONF: f"{old}NodeName=b CPUs=2\n"}


def test_ten_thousand_nodes_of_which_half_keep_their_size_are_two_lines() -> None:
    old, new = ({SLURM_CONF: f"NodeName=a-[0-9999] CPUs={cpus}\n"} for cpus in (1, 2))
    kept = keep_sizes(old, new, frozenset(f"a-{ordinal}" for ordinal in range(0, 10_000, 2)))[SLURM_CONF]
    assert [len(_names(line)) for line in kept.splitlines()] == [5000, 5000]


def _names(line: str) -> list[str]:
    return expand((pairs_of(line) or [("", "")])[0][1])
