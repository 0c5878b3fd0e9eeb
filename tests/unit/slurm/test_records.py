"""Records are what frozen dataclasses are, as far as anyone here asks."""

import subprocess
import sys
from typing import Any

import pytest

from slurm.records import record


@record
class Lift:
    reason: str
    by: str = "root"


@record
class Drain:
    reason: str
    by: str = "root"


def test_fields_come_by_place_by_name_or_by_default() -> None:
    assert (Lift("a").reason, Lift("a").by) == ("a", "root")
    assert Lift("a", by="b") == Lift(by="b", reason="a") == Lift("a", "b")
    assert repr(Lift("a")) == "Lift(reason='a', by='root')"


def test_records_of_two_classes_are_never_equal() -> None:
    assert Lift("a") == Lift("a")
    assert hash(Lift("a")) == hash(Lift("a"))
    assert Lift("a") != Lift("b")
    assert Lift("a") != Drain("a")
    assert len({Lift("a"), Lift("a"), Drain("a")}) == 2


def test_a_record_cannot_be_changed() -> None:
    one: Any = Lift("a")
    with pytest.raises(AttributeError, match="Lift cannot be changed"):
        one.reason = "b"
    with pytest.raises(AttributeError):
        del one.reason
    assert one.reason == "a"


def test_a_match_takes_fields_by_place() -> None:
    match Lift("a"):
        case Lift(reason, by):
            assert (reason, by) == ("a", "root")


@pytest.mark.parametrize(
    ("values", "more"),
    [
        pytest.param((), {}, id="none"),
        pytest.param(("a", "b", "c"), {}, id="too many"),
        pytest.param(("a",), {"reason": "b"}, id="twice"),
        pytest.param(("a",), {"why": "b"}, id="unknown"),
    ],
)
def test_wrong_fields_are_refused(values: tuple[str, ...], more: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="has the fields reason, by"):
        Lift(*values, **more)


@pytest.mark.parametrize("module", ["programs.worker.run", "programs.worker.stop"])
def test_a_workers_programs_import_nothing_slow(module: str) -> None:
    slow = {"argparse", "ast", "dataclasses", "inspect", "pathlib", "typing"}
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-EsSB", "-c", code], capture_output=True, text=True, check=True)
    assert not slow & set(done.stdout.split())
