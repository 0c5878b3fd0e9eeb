"""Each benchmark that needs nothing but Python, at its smallest size; what becomes of figures and of failures; and the catalogue."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from configs.load import load_cluster
from engine.project import load
from tests.bench import __main__ as verb
from tests.bench import plots
from tests.bench.catalogue import ALL, BARE, HERE
from tests.bench.forty import Size, options
from tests.bench.results import ROOT, Benchmark, Figure, Results, describe_machine, figure, measure_all
from tests.bench.scale import benchmarks
from tests.bench.smallest import assert_yields_figures, each_of


@each_of(HERE)
def test_benchmark_of_this_machine_yields_its_figures(bench: Benchmark[Any]) -> None:
    assert_yields_figures(bench)


def test_benchmarks_have_different_names() -> None:
    names = [bench.name for bench in (*BARE, *ALL)]
    assert sorted(set(names)) == sorted(names)


def test_forty_workers_are_a_stack_that_can_be_deployed() -> None:
    """At its smallest size the benchmark leaves the workers as they are."""
    words = options(Size())
    raw = json.loads(load(ROOT, "dev", tuple(words[1::2])).config["slipway:cluster"])
    workers = load_cluster(raw, ROOT, "Pulumi.dev.yaml").node_sets[0]
    assert (words[0], workers.name, workers.size) == ("--config", "cpu", 40)


def one(_: None) -> Iterator[Figure]:
    yield figure("first", 2, [1.0, 3.0, 1.5])


def broken(_: None) -> Iterator[Figure]:
    yield figure("second", None, [4.0])
    raise RuntimeError("no such file\nand more")


def test_failed_benchmark_keeps_its_figures_and_the_others_run(tmp_path: Path) -> None:
    file, lines = tmp_path / "state" / "bench.json", list[str]()

    def last(_: None) -> Iterator[Figure]:
        assert [each["name"] for each in json.loads(file.read_text())["figures"]] == ["first", "second"]
        assert any("second" in line for line in lines), "figures are printed as they come"
        yield figure("third", 1, [2.0])

    three = [Benchmark(name, measure, None, None) for name, measure in (("a", one), ("b", broken), ("c", last))]
    results = measure_all(three, file, lines.append)
    assert [each.name for each in results.figures] == ["first", "second", "third"]
    assert results.failed == {"b": "no such file"}
    written = json.loads(file.read_text())
    assert written["failed"] == {"b": "no such file"}
    assert written["machine"].keys() >= {"processor", "cores", "memory_gib", "kernel", "load"}
    assert any("no such file\nand more" in line for line in lines)
    assert "       1.5 s  first (worst of 3: 3, promised 2: holds)" in lines
    assert "         2 s  third (promised 1: MISSED)" in lines


def test_verb_exits_with_1_after_a_failure_and_refuses_unknown_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(verb.main)
    monkeypatch.setattr(verb, "ALL", [Benchmark("good", one, None, None), Benchmark("bad", broken, None, None)])
    monkeypatch.setattr(verb, "FILE", tmp_path / "bench.json")
    assert CliRunner().invoke(app, ["good"]).exit_code == 0
    failed = CliRunner().invoke(app, ["bad", "good"])
    assert failed.exit_code == 1
    assert failed.output.splitlines()[-2:] == ["FAILED:", "  bad: no such file"]
    assert "first" in failed.output
    refused = CliRunner().invoke(app, ["worse"])
    assert refused.exit_code == 2
    assert "there is no worse" in refused.output


def test_plots_are_drawn_from_the_figures_of_a_whole_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They look figures up by their names at full size."""

    def measure(mode: str, number: int, image: Path) -> dict[str, float]:
        return defaultdict(lambda: float(number))

    monkeypatch.setattr(benchmarks.run, "measure", measure)
    scale = benchmarks.BENCHMARKS[0]
    figures = list(scale.measure(replace(scale.full, image=tmp_path)))
    drawn = plots.draw(Results(describe_machine(), figures).as_dict(), tmp_path)
    assert [path.name for path in drawn] == ["promises.svg", "scale.svg"]
    assert "1,000 real slurmds" in drawn[1].read_text()
