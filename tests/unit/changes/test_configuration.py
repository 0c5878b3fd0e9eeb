"""What changes between two slurm.conf files, in Slurm's own terms, and what each change needs."""

import pytest

from changes.configuration import compare, parse
from changes.parameters import NODES, PARTITIONS, SETTINGS, Need
from configs.models.slurm_keys import GLOBAL_KEYS, NODE_KEYS, PARTITION_KEYS
from tests.unit.changes.lab import CONF

CHANGES: dict[str, tuple[tuple[str, str], list[tuple[str, str, str, Need]]]] = {
    "a larger range": (
        ("cpu-[0-3] CPUs", "cpu-[0-7] CPUs"),
        [("nodes", "cpu-[4-7]", "added: 4 CPUs, 1000 MiB each", Need.RECONFIGURE)],
    ),
    "a smaller range": (("gpu-[0-1] CPUs", "gpu-0 CPUs"), [("nodes", "gpu-1", "removed", Need.END)]),
    "a set that goes": (
        ("NodeName=gpu-[0-1] CPUs=8 RealMemory=2000 Gres=gpu:h100:4 Feature=nvlink,ib State=CLOUD\n", ""),
        [("nodes", "gpu-[0-1]", "removed", Need.END)],
    ),
    "more memory": (("RealMemory=1000", "RealMemory=1500"), [("nodes", "cpu-[0-3]", "RealMemory 1000 → 1500", Need.DRAIN)]),
    "more GPUs": (("h100:4", "h100:8"), [("nodes", "gpu-[0-1]", "Gres gpu:h100:4 → gpu:h100:8", Need.DRAIN)]),
    "a feature": (("=nvlink,ib", "=nvlink"), [("nodes", "gpu-[0-1]", "Feature nvlink,ib → nvlink", Need.RECONFIGURE)]),
    "a weight that was not there": (
        ("CPUs=4", "CPUs=4 Weight=5"),
        [("nodes", "cpu-[0-3]", "Weight 5, was not set", Need.RECONFIGURE)],
    ),
    "a new partition": (
        ("PartitionName=gpu", "PartitionName=debug Nodes=cpu-[0-1] State=UP\nPartitionName=gpu"),
        [("partitions", "partition debug", "added, with cpu-[0-1]", Need.RECONFIGURE)],
    ),
    "a partition that goes": (
        ("PartitionName=gpu Nodes=gpu-[0-1] MaxTime=INFINITE State=UP\n", ""),
        [("partitions", "partition gpu", "removed", Need.END)],
    ),
    "a shorter time": (
        ("1-00:00:00", "00:30:00"),
        [("partitions", "partition main", "MaxTime 1-00:00:00 → 00:30:00", Need.RECONFIGURE)],
    ),
    "a partition of other nodes": (
        ("main Nodes=cpu-[0-3]", "main Nodes=cpu-[1-3],gpu-0"),
        [("partitions", "partition main", "loses cpu-0 and gets gpu-0", Need.RECONFIGURE)],
    ),
    "the same nodes spelled otherwise": (("main Nodes=cpu-[0-3]", "main Nodes=cpu-0,cpu-[1-3]"), []),
    "a limit": (("MaxJobCount=100", "MaxJobCount=200"), [("limits", "MaxJobCount", "100 → 200", Need.RECONFIGURE)]),
    "a daemon's setting": (
        ("bf_window=60", "bf_window=90"),
        [("settings", "SchedulerParameters", "bf_window=60 → bf_window=90", Need.RECONFIGURE)],
    ),
    "a key in another case": (("MaxJobCount=100", "MAXJOBCOUNT=100"), []),
    "a comment": (("# rendered", "# rendered again"), []),
    "a setting that goes": (("MaxJobCount=100\n", ""), [("limits", "MaxJobCount", "not set any more, was 100", Need.RECONFIGURE)]),
    "how daemons trust each other": (
        ("ClusterName=lab", "ClusterName=lab\nAuthType=auth/slurm"),
        [("settings", "AuthType", "auth/slurm, was not set", Need.RESTART)],
    ),
    "a line of another kind": (
        ("PartitionName=gpu", "NodeSet=fast Feature=ib\nPartitionName=gpu"),
        [("settings", "NodeSet=fast Feature=ib", "added", Need.RECONFIGURE)],
    ),
}


@pytest.mark.parametrize(("edit", "expected"), CHANGES.values(), ids=CHANGES)
def test_change_is_said_in_slurms_terms_with_what_it_needs(edit: tuple[str, str], expected: list[tuple[str, str, str, Need]]) -> None:
    assert edit[0] in CONF
    found = compare(parse(CONF), parse(CONF.replace(*edit, 1)))
    assert [(item.topic, item.subject, item.change, item.parameter.need) for item in found] == expected


def test_partition_of_all_nodes_has_them() -> None:
    configuration = parse(CONF.replace("main Nodes=cpu-[0-3]", "main Nodes=ALL"))
    assert configuration.nodes_of("main") == frozenset(configuration.nodes)


@pytest.mark.parametrize(("table", "keys"), [(SETTINGS, GLOBAL_KEYS), (NODES, NODE_KEYS), (PARTITIONS, PARTITION_KEYS)])
def test_table_names_keys_that_slurm_knows_and_a_source_for_each(table: dict[str, object], keys: frozenset[str]) -> None:
    assert table.keys() <= keys
    assert all(getattr(row, "source") for row in table.values())  # noqa: B009 - rows of three tables


def test_ten_thousand_nodes_are_one_change() -> None:
    [item] = compare(parse(CONF), parse(CONF.replace("cpu-[0-3] CPUs", "cpu-[0-9999] CPUs")))
    assert (item.subject, len(item.nodes)) == ("cpu-[4-9999]", 9996)
