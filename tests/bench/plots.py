"""The plots of docs/explain/benchmarks.md, from .slipway/bench.json. `make bench` draws them, and `python -m tests.bench.plots` alone."""

# pyright: reportUnknownMemberType=false
# matplotlib's own types leave its keyword arguments open.

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import PercentFormatter

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".slipway" / "bench.json"
FOLDER = ROOT / "docs" / "figures"
_HOLDS, _MISSED, _PLAIN, _BACK = "#2f7d4f", "#c2412d", "#9aa5b1", "#3b6ea8"


def share_of_promise(figures: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Name and measured share (1.0: exactly the promise) of each figure that has a promise above zero, the largest share first."""
    shares = [(figure["name"], figure["median"] / figure["promised"]) for figure in figures if figure["promised"]]
    return sorted(shares, key=lambda share: -share[1])


def zero_to_idle(figures: list[dict[str, Any]]) -> dict[int, tuple[float, float, float]]:
    """Per number of nodes: seconds from zero to idle, the same by a plain loop without Kubernetes, and back to no pod. Raises KeyError."""
    seconds = {figure["name"]: figure["median"] for figure in figures}
    out = "real slurmds from zero to idle"
    return {
        nodes: (
            seconds[f"{nodes} {out}"],
            seconds[f"{nodes} {out}: by a plain loop, no Kubernetes"],
            seconds[f"{nodes} idle nodes back to no pod"],
        )
        for nodes in (100, 1000)
    }


def draw(results: dict[str, Any], folder: Path = FOLDER) -> list[Path]:
    """Writes both plots as SVG, the same bytes for the same results; gives their paths."""
    mpl.rcParams.update({"svg.hashsalt": "slipway", "svg.fonttype": "none", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    caption = f"make bench, {results['machine']['cores']} cores"
    drawings = {"promises": _promises(results["figures"], caption), "scale": _scale(results["figures"], caption)}
    paths = [folder / f"{name}.svg" for name in drawings]
    for path, drawing in zip(paths, drawings.values(), strict=True):
        drawing.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines()))
    return paths


def _promises(figures: list[dict[str, Any]], caption: str) -> Drawing:
    shares = share_of_promise(figures)
    drawing = Drawing(figsize=(8, 0.3 * len(shares) + 1))
    axes = drawing.subplots()
    colors = [_HOLDS if share <= 1 else _MISSED for _, share in shares]
    bars = axes.barh([name for name, _ in shares], [share for _, share in shares], color=colors)
    axes.bar_label(bars, [f"{share:.0%}" for _, share in shares], padding=3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.margins(x=0.1)
    axes.set_xlabel(f"measured, as a share of the promise (line: the promise). {caption}")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return drawing


def _scale(figures: list[dict[str, Any]], caption: str) -> Drawing:
    rows = zero_to_idle(figures)
    drawing = Drawing(figsize=(8, 3))
    series = (
        ("zero to idle, plain loop without Kubernetes", 1, _PLAIN),
        ("zero to idle, Slipway", 0, _HOLDS),
        ("idle to no pod, Slipway", 2, _BACK),
    )
    for axes, (nodes, seconds) in zip(drawing.subplots(1, len(rows)), rows.items(), strict=True):
        for place, (label, at, color) in enumerate(series):
            axes.bar_label(axes.bar(place, seconds[at], label=label, color=color), fmt="%.3g s", padding=2)
        axes.set_title(f"{nodes:,} real slurmds")
        axes.set_xticks([])
        axes.margins(y=0.15)
        axes.set_ylabel("seconds")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = drawing.axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.12), ncols=len(labels), frameon=False)
    drawing.text(0.01, -0.16, caption)
    return drawing


if __name__ == "__main__":
    for written in draw(json.loads(RESULTS.read_text())):
        print(written.relative_to(ROOT))
