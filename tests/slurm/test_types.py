"""Values that configs takes for readable are those that Slurm's own library reads, key by key, in the built image."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from configs.models.slurm_keys import GLOBAL_KEYS, LINE_KEYS, NODE_KEYS, PARTITION_KEYS
from configs.rules.slurm_types import GLOBAL_TYPES, NODE_TYPES, PARTITION_TYPES, Number, Time, Type, Words
from tests.support.slurm.accepted_lines import ask

KINDS = [
    pytest.param("", GLOBAL_KEYS - LINE_KEYS, GLOBAL_TYPES, id="cluster"),
    pytest.param("NodeName=n1 ", NODE_KEYS - LINE_KEYS, NODE_TYPES, id="node"),
    pytest.param("NodeName=n1\nPartitionName=p ", PARTITION_KEYS - LINE_KEYS, PARTITION_TYPES, id="partition"),
]
ANY = ("soon", "1G", "maybe", "-5", "1.5", "1e3", "5m", "on", "off", "y", "n")
NUMBERS = ("08", "010", "0x10", "+5", "infinite", "UNLIMITED", "yes")
TIMES = ("90", "1:30", "1:02:03", "1-0", "1-02:03:04", "1:2:3:4", "1:a", "INFINITE", "unlimited", "-1", "0")
WORDS = ("yes", "No", "TRUE", "false", "up", "down", "0", "1", "2", "debug", "debug9", "NOW", "hourly", "ANY", "all")
OTHERWISE = frozenset(
    """
    AccountingStorageEnforce BcastExclude CpuBind CpuFreqDef CpuFreqGovernors DebugFlags Exclusive HealthCheckNodeState MCSParameters
    NamespaceType OverTimeLimit PluginDir PreemptMode PrologFlags PropagateResourceLimits PropagateResourceLimitsExcept ReconfigFlags
    SelectTypeParameters SlurmctldPort SlurmdUser SlurmSchedLogLevel SlurmUser State SuspendTime TaskPluginParam
    """.split()  # noqa: SIM905 - words read better than two dozen quotes
)
"""Keys whose values have a grammar of their own, or depend on other keys: Slurm refuses some, and the table says nothing of them."""


def values(kind: Type) -> list[str]:
    """Values at the bounds of a type, and beyond."""
    match kind:
        case Number(most, least):
            return [*ANY, *NUMBERS, *(str(each) for each in (least - 1, least, 70, most, most + 1))]
        case Time():
            return [*(each for each in ANY if each != "-5"), *TIMES]  # of which Slurm's parser takes some as no time at all
        case Words(words, more):
            # Of a level Slurm reads the first digits, and 1G as 1; we do not.
            return [*(each for each in ANY if not each[0].isdigit()), *WORDS, *words, *more, *(each.upper() for each in words)]


@pytest.mark.parametrize(("head", "keys", "types"), KINDS)
def test_value_is_refused_exactly_where_slurm_refuses_it(
    image_root: Path, head: str, keys: frozenset[str], types: Mapping[str, Type]
) -> None:
    assert types.keys() <= keys
    cases = [(key, value) for key, kind in types.items() for value in dict.fromkeys(values(kind))]
    ours = [types[key].reads(value) for key, value in cases]
    differing = [(*case, said) for case, mine, said in zip(cases, ours, ask(image_root, head, cases), strict=True) if mine != said]
    assert differing == []


@pytest.mark.parametrize(("head", "keys", "types"), KINDS)
def test_key_without_a_type_takes_any_text(image_root: Path, head: str, keys: frozenset[str], types: Mapping[str, Type]) -> None:
    """A number or a truth value that the table misses shows here."""
    cases = [(key, value) for key in sorted(keys - types.keys() - OTHERWISE) for value in ("soon", "5", "yes", "1G")]
    refused = [case for case, taken in zip(cases, ask(image_root, head, cases), strict=True) if not taken]
    assert refused == []
