"""Numbers as other languages send them: a component that is called from Go, Java or YAML gets every number as a double."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from configs.faults import ConfigFaults
from tests.support.configs.stacks import EXAMPLES, ROOT, cluster, edited

EDITS = {"slurm.maxArraySize": 2000, "slurm.settings.MaxStepCount": 3000, "nodeSets[0].update.maxUnavailable": 2}


def doubled(value: Any) -> Any:
    """The same value with every whole number as a double."""
    if isinstance(value, dict):
        return {key: doubled(one) for key, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [doubled(one) for one in cast(list[Any], value)]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize("stack", EXAMPLES)
def test_doubles_without_a_fraction_are_whole_numbers_everywhere(stack: str) -> None:
    config = edited(stack, EDITS)
    assert json.dumps(doubled(config)) != json.dumps(config)
    assert cluster(stack, doubled(config)) == cluster(stack, EDITS)


@pytest.mark.parametrize("given", [pytest.param(2.5, id="fraction"), pytest.param("2", id="text"), pytest.param(True, id="boolean")])
def test_what_is_no_whole_number_is_refused_with_its_place(given: object) -> None:
    with pytest.raises(ConfigFaults, match=r"cluster\.nodeSets\[0\]\.size"):
        cluster("dev", {"nodeSets[0].size": given})


@pytest.mark.parametrize("given", [float("inf"), float("nan"), 1e300])
def test_number_beyond_all_bounds_is_refused_and_not_a_stack_trace(given: float) -> None:
    with pytest.raises(ConfigFaults, match=r"cluster\.nodeSets\[0\]\.size"):
        cluster("dev", {"nodeSets[0].size": given})


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("*.py")), ids=lambda file: file.name)
def test_every_whole_number_of_the_config_is_of_the_one_type(file: Path) -> None:
    strict = [line for line in file.read_text().splitlines() if "Annotated[int, Field(" in line or "strict=True, ge" in line]
    assert strict == []
