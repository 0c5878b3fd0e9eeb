"""Every key of the reference does something: another value of it changes an object that is applied. What an engine ignores, and what no
object that is there takes, does not count. A key whose change is not applied is told in the preview, refused, or listed with a reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

import pytest

from changes.steps import Step, differences, step_of
from changes.story import Queue, tell
from configs.faults import ConfigFaults
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.render import slurm
from names import annotations
from tests.plan.builders import Declare, Declared, declaring
from tests.plan.every_key import Config, Key, Place, holds_keys, keys, model_of, others, reference_keys
from tests.plan.key_cases import BASES, CASES, NOTHING, REFUSED, TOLD, Case
from tests.support.configs.stacks import ROOT, with_edits

Fate = Literal["applied", "told", "lost", "untried"]
Resources = Mapping[tuple[str, str], Declared]

TRIES = 4
"""Valid values that are tried before a key counts as lost."""
_WHAT_TO_ADD: Mapping[str, str] = {
    "untried": (
        "no other value of it is valid in BASES of tests/plan/key_cases.py. Give the key an example in its model (Field(examples=[...])) "
        "that fits there, or a Case with what it needs beside it"
    ),
    "lost": (
        "no other value of it changes an object that is applied. Apply it, refuse it (REFUSED), or tell of it in the preview "
        "(changes/settled.py, TOLD). If it matters in another stack only, give it a Case; if nothing is to change, add it to NOTHING"
    ),
}


@dataclass(frozen=True)
class Rendered:
    """A stack as it is rendered."""

    files: Mapping[str, str]
    """Of Slurm: most keys are in them, and they alone take a tenth of the time."""
    resources: Resources
    applied: Mapping[tuple[str, str], Any]


@pytest.fixture(scope="module")
def fates() -> dict[str, Fate]:
    """What becomes of a change of each key of the reference."""
    found: dict[str, Fate] = dict.fromkeys(reference_keys(), "untried")
    with declaring() as declare:
        for name, case in sorted(CASES.items(), key=lambda each: each[1].base):
            before = render(declare, load(with_edits(BASES[case.base], case.before)))
            found[name] = fate(declare, before, load(edits_of(case)))
        stacks: list[tuple[Config, Place]] = [(config, ()) for config in BASES.values()]
        seen: set[str] = set()
        for config, below in stacks:  # it grows with what is below keys that no stack has
            stacks += _look(declare, config, below, found, seen)
    return found


def _look(declare: Declare, config: Config, below: Place, found: dict[str, Fate], seen: set[str]) -> Iterator[tuple[Config, Place]]:
    """Changes each key of a stack, or of a part of it, that is not settled yet. Gives stacks with keys that none had so far."""
    before = render(declare, load(config))
    here = [key for key in keys(config) if key.place[: len(below)] == below]
    seen.update(key.name for key in here)
    for key in here:
        if found[key.name] in ("applied", "told") or key.name in REFUSED:
            continue
        if holds_keys(key.about):
            found[key.name] = "applied"  # as its keys are
            continue
        for other, cluster in islice(_valid(config, key), TRIES):
            found[key.name] = fate(declare, before, cluster)
            if model_of(key.about) and (new := {each.name for each in keys(other)} - seen):
                seen.update(new)
                yield other, key.place
            if found[key.name] != "lost":
                break


def _valid(config: Config, key: Key) -> Iterator[tuple[Config, Cluster]]:
    for other in others(config, key):
        try:
            yield other, load(other)
        except ConfigFaults:
            continue


def load(config: Config) -> Cluster:
    return load_cluster(config, ROOT, "Pulumi.x.yaml")


def edits_of(case: Case) -> Config:
    return with_edits(with_edits(BASES[case.base], case.before), case.edits)


def render(declare: Declare, cluster: Cluster) -> Rendered:
    resources = declare(cluster)
    return Rendered(slurm.render(cluster), resources, applied(resources))


def fate(declare: Declare, before: Rendered, cluster: Cluster) -> Fate:
    """What becomes of a change."""
    if slurm.render(cluster) != before.files:
        return "applied"
    resources = declare(cluster)
    if applied(resources) != before.applied:
        return "applied"
    return "told" if tell(list(steps(before.resources, resources)), Queue()).not_applied else "lost"


def applied(resources: Resources) -> dict[tuple[str, str], Any]:
    """What an engine applies to resources that are there."""
    return {key: (_without(each.inputs, [*each.ignored, *_not_taken(each)]), each.stays) for key, each in resources.items()}


def _not_taken(resource: Declared) -> Iterator[str]:
    """What is declared and changes nothing that is there: marks for previews, and disks of nodes."""
    match resource.type.rpartition(":")[2]:
        case "PersistentVolumeClaim":
            yield f"metadata.annotations.{annotations.STORAGE_CLASS}"
        case "Secret":
            yield from (f"metadata.annotations.{mark}" for mark in (annotations.GENERATION, annotations.KEPT))
        case "NodeGroup":
            yield f"tags.{annotations.DESIRED}"
        case "NodeSet":
            yield from (
                f"spec.volumeClaimTemplates.{at}.spec" for at in range(len(resource.inputs["spec"].get("volumeClaimTemplates", ())))
            )
        case _:
            pass


def _without(part: Any, paths: list[str]) -> Any:
    """A copy without the values at some paths."""
    for path in paths:
        part = _cut(part, path)
    return part


def _cut(part: Any, path: str) -> Any:
    first, _, rest = path.partition(".")
    if isinstance(part, list):
        items = cast(list[Any], part)
        return [_cut(each, rest) if str(at) == first else each for at, each in enumerate(items)]
    if not isinstance(part, dict):
        return part
    fields = cast(dict[str, Any], part)
    if path in fields:
        return {key: each for key, each in fields.items() if key != path}
    cut = _cut(fields.get(first), rest)
    return {**{key: each for key, each in fields.items() if key != first}, **({first: cut} if cut not in (None, {}) else {})}


def steps(old: Resources, new: Resources) -> Iterator[Step]:
    """The changes as a preview has them: ignored fields are as they were."""
    for key in sorted(old.keys() & new.keys()):
        was, will = old[key].inputs, new[key].inputs
        if was == will:
            continue
        for path in new[key].ignored:
            will = _kept(was, will, path.split("."))
        changed = tuple(differences(was, will))
        if step := step_of("update", key[0], key[1], was, will, changed):
            yield step


def _kept(was: Any, will: Any, path: list[str]) -> Any:
    """`will` with the value of `was` at a path."""
    rest = {key: each for key, each in will.items() if key != path[0]}
    if path[0] not in was:
        return rest
    return {**rest, path[0]: _kept(was[path[0]], will.get(path[0], {}), path[1:]) if path[1:] else was[path[0]]}


def test_change_of_every_key_is_applied_or_told(fates: dict[str, Fate]) -> None:
    missing = [f"{name}: {_WHAT_TO_ADD[fate]}" for name, fate in sorted(fates.items()) if fate in _WHAT_TO_ADD]
    missing = [line for line in missing if line.partition(":")[0] not in (*REFUSED, *NOTHING)]
    assert not missing, "\n".join(missing)


def test_preview_tells_of_each_key_that_is_not_applied(fates: dict[str, Fate]) -> None:
    assert {name for name, fate in fates.items() if fate == "told"} == TOLD


def test_keys_that_change_nothing_are_still_there(fates: dict[str, Fate]) -> None:
    assert {*CASES, *REFUSED, *TOLD, *NOTHING} <= fates.keys()
    assert not [name for name in NOTHING if fates[name] in ("applied", "told")]


@pytest.mark.parametrize(("case", "words"), REFUSED.values(), ids=REFUSED)
def test_value_that_does_not_fit_is_refused(case: Case, words: str) -> None:
    with pytest.raises(ConfigFaults) as caught:
        load(edits_of(case))
    assert words in str(caught.value)
