"""What `make quick` runs: the tests that import what has changed, nearest first."""

import grimp
import pytest

from tests.quick import ALWAYS, ROOMS, modules_of, plan_tests


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*ROOMS, cache_dir=None)


@pytest.mark.parametrize(
    ("file", "module"),
    [
        pytest.param("slurm/states.py", "slurm.states", id="module"),
        pytest.param("slurm/__init__.py", "slurm", id="package"),
        pytest.param("configs/render/templates/slurm.conf.j2", "configs.render.slurm", id="template"),
        pytest.param("tests/unit/slurm/test_states.py", "tests.unit.slurm.test_states", id="test"),
    ],
)
def test_changed_file_stands_for_modules(graph: grimp.ImportGraph, file: str, module: str) -> None:
    assert module in modules_of([file], graph.modules)


def test_page_stands_for_no_module(graph: grimp.ImportGraph) -> None:
    assert modules_of(["docs/operate/users.md", "Makefile"], graph.modules) == set()


def test_nearest_tests_come_first(graph: grimp.ImportGraph) -> None:
    tests = plan_tests(graph, ["slurm.states"])
    assert set(ALWAYS) <= set(tests)
    assert tests.index("tests.unit.slurm.test_states") < tests.index("tests.unit.components.test_health_checks")
    assert [each for each in tests if not each.startswith(("tests.unit.", "tests.plan."))] == []
