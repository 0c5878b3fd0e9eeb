"""The words of configs/rules/slurm_words.py are those of the Slurm in the built image: in its programs, and to its own parser."""

import re
from pathlib import Path

import pytest

from configs.faults import ConfigFaults
from configs.rules.slurm_types import Items, Value, Words
from configs.rules.slurm_words import GLOBAL_VALUES, NODE_VALUES, PARTITION_VALUES, SCHEDULER_PARAMETERS
from tests.support.configs.stacks import cluster
from tests.support.slurm.accepted_lines import ask

HEADS = [("", GLOBAL_VALUES), ("NodeName=n1 ", NODE_VALUES), ("NodeName=n1\nPartitionName=p ", PARTITION_VALUES)]
LISTS = [
    pytest.param("SchedulerParameters", SCHEDULER_PARAMETERS, id="SchedulerParameters"),
    *(
        pytest.param(key, kind, id=f"{key}-{at}")
        for at, (_, table) in enumerate(HEADS)
        for key, kind in table.items()
        if isinstance(kind, Items)
    ),
]
BESIDE_OTHERS = ("MCSPlugin", "PreemptMode", "PreemptType")
"""Keys that Slurm takes beside others only. Preemption has a test of its own."""
PREEMPTION = [
    (kind, mode)
    for kind in ("preempt/none", "preempt/qos", "preempt/partition_prio")
    for mode in ("OFF", "CANCEL", "REQUEUE", "GANG", "SUSPEND", "SUSPEND,GANG", "CANCEL,REQUEUE", "REQUEUE,GANG", "KILL", "OFF,GANG")
]


def words_of(kind: Value) -> tuple[str, ...]:
    match kind:
        case Items(flags, valued, more):
            return (*flags, *valued, *more)
        case Words(words, more):
            return (*words, *more)
        case _:
            return ()


@pytest.fixture(scope="module")
def programs(image_root: Path) -> bytes:
    """What Slurm's programs, its library and its plugins are made of, in small letters."""
    plugins = next(image_root.glob("usr/lib/*/slurm-wlm"))
    files = [*plugins.glob("*.so"), *image_root.glob("usr/sbin/slurm*"), *image_root.glob("usr/bin/s*")]
    return b"\0".join(file.read_bytes() for file in files if file.is_file() and not file.is_symlink()).lower()


@pytest.mark.parametrize(("key", "kind"), LISTS)
def test_word_stands_in_slurms_programs(programs: bytes, key: str, kind: Items) -> None:
    """But for spellings that nobody would write: documented defaults, and older names."""
    assert [word for word in (*kind.flags, *kind.valued) if word.lower().encode() not in programs] == [], key


def test_no_parameter_of_the_backfill_scheduler_is_missing(programs: bytes) -> None:
    """Those that have a value: programs look for such a word with its sign behind it."""
    found = {word.decode() for word in re.findall(rb"\0(bf_[a-z_]+)=(?=\0)", programs)}
    ours = {word.lower() for word in words_of(SCHEDULER_PARAMETERS)}
    assert len(found) > 20
    assert found - ours == set()


@pytest.mark.parametrize(("head", "table"), HEADS)
def test_parser_takes_each_word(image_root: Path, head: str, table: dict[str, Value]) -> None:
    lists = [(key, kind) for key, kind in table.items() if isinstance(kind, Items | Words) and key not in BESIDE_OTHERS]
    cases = [(key, word) for key, kind in lists for word in words_of(kind)]
    refused = [case for case, taken in zip(cases, ask(image_root, head, cases), strict=True) if not taken]
    assert refused == []


def test_preemption_is_refused_where_slurm_refuses_it(image_root: Path) -> None:
    taken = ask(image_root, "", [("PreemptType", f"{kind}\nPreemptMode={mode}") for kind, mode in PREEMPTION])
    assert [_is_accepted(*each) for each in PREEMPTION] == taken, list(zip(PREEMPTION, taken, strict=True))


def _is_accepted(kind: str, mode: str) -> bool:
    try:
        cluster("h100", {"slurm.settings": {"PreemptType": kind, "PreemptMode": mode}})
    except ConfigFaults:
        return False
    return True
