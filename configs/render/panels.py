"""Dashboards as Grafana reads them: from rows of panels to JSON. What they show is in dashboards.py."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from configs.render.alerts import selected

WIDTH = 24
"""Columns of a dashboard in Grafana."""
MATCHER = 'slurm_cluster="$cluster"'
_SOURCE = {"type": "prometheus", "uid": "$datasource"}
_HEIGHT = {"stat": 4, "timeseries": 8, "table": 8, "bargauge": 8}
_SCHEMA = 39
"""Version of Grafana's format: that of Grafana 10, which later ones read."""


@dataclass(frozen=True)
class Query:
    """One query of a panel, with `{@}` for the cluster's selector."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str
    queries: tuple[Query, ...]
    kind: Literal["timeseries", "stat", "table", "bargauge"] = "timeseries"
    unit: str = "short"
    stacked: bool = False
    about: str = ""
    """What the numbers mean, where the title does not say it."""
    red_from: float | None = None
    """Of a stat: from this number on it is red, and green below."""


@dataclass(frozen=True)
class Dashboard:
    """One dashboard: rows of panels, each row as wide as the page."""

    name: str
    """Name of its file, and its address in Grafana."""
    title: str
    rows: tuple[tuple[Panel, ...], ...]


def render(dashboard: Dashboard) -> str:
    """The JSON of a dashboard."""
    content = {
        "uid": f"slipway-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["slurm", "slipway"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_data_source(), _cluster()]},
        "panels": list(_panels(dashboard.rows)),
    }
    return json.dumps(content, indent=1) + "\n"


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _cluster() -> dict[str, Any]:
    values = 'label_values(up{job="slurmctld-jobs"}, slurm_cluster)'
    return {"name": "cluster", "label": "Cluster", "type": "query", "datasource": _SOURCE, "query": values, "refresh": 2}


def _panels(rows: Sequence[Sequence[Panel]]) -> Iterator[dict[str, Any]]:
    top, number = 0, 1
    for row in rows:
        width, height = WIDTH // len(row), max(_HEIGHT[panel.kind] for panel in row)
        for at, panel in enumerate(row):
            yield {"id": number, "gridPos": {"x": at * width, "y": top, "w": width, "h": height}, **_panel(panel)}
            number += 1
        top += height


def _panel(panel: Panel) -> dict[str, Any]:
    now = panel.kind != "timeseries"
    return {
        "type": panel.kind,
        "title": panel.title,
        **({"description": panel.about} if panel.about else {}),
        "datasource": _SOURCE,
        "targets": [_target(query, at, panel, now) for at, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        **({"transformations": [_TABLE]} if panel.kind == "table" else {}),
        **({"options": {"reduceOptions": {"calcs": ["lastNotNull"]}}} if panel.kind in ("stat", "bargauge") else {}),
    }


_TABLE = {"id": "organize", "options": {"excludeByName": dict.fromkeys(("Time", "__name__", "instance", "job", "slurm_cluster"), True)}}


def _target(query: Query, at: int, panel: Panel, now: bool) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + at),
        "expr": selected(query.expression, MATCHER),
        **({"legendFormat": query.legend} if query.legend else {}),
        **({"instant": True} if now else {}),
        **({"format": "table"} if panel.kind == "table" else {}),
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    custom: dict[str, Any] = {}
    if panel.kind == "timeseries":
        custom = {"fillOpacity": 30 if panel.stacked else 5, "showPoints": "never"}
        if panel.stacked:
            custom["stacking"] = {"mode": "normal"}
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    return {
        "unit": panel.unit,
        "min": 0,
        **({"custom": custom} if custom else {}),
        **({"thresholds": {"mode": "absolute", "steps": steps}} if panel.kind == "stat" else {}),
    }
