"""The alert rules of a cluster, from configs/render/templates/alerts.yaml: for a Prometheus of its own and for a PrometheusRule alike."""

import re
from functools import cache
from pathlib import Path
from typing import Any, cast

from configs.models.cluster import Cluster
from configs.models.fields import camel
from configs.models.monitoring import Monitoring, Thresholds
from configs.yaml_text import parse_yaml

RUNBOOKS = "docs/operate/runbooks.md"
"""Where each alert has a section, unless the config says where the page is published."""
_TEMPLATE = Path(__file__).parent / "templates" / "alerts.yaml"


def selected(expression: str, matcher: str) -> str:
    """An expression with `{@}` and `{@, ...}` as selectors: `matcher` is the one that all have in common."""
    return re.sub(r"\{@", lambda _: "{" + matcher, expression)


@cache
def alert_names() -> tuple[str, ...]:
    """Every alert, in the order of the template."""
    groups = cast(list[dict[str, Any]], parse_yaml(_TEMPLATE.read_text()))
    return tuple(rule["alert"] for group in groups for rule in group["rules"])


def build_alerts(cluster: Cluster, monitoring: Monitoring) -> list[dict[str, Any]]:
    """The groups of rules with this cluster's selector and thresholds, without the alerts that the config leaves out."""
    thresholds = monitoring.thresholds
    values = {camel(name): str(getattr(thresholds, name)) for name in Thresholds.model_fields}
    # Each kubelet brings a key within the time, and slurmctld stops that long after its own pod has it.
    values |= {"cluster": cluster.name, "namespace": cluster.namespace, "keyWaitsS": str(2 * cluster.keys.spread_s + 60)}
    text = re.sub(r"@(\w+)@", lambda match: values[match[1]], _TEMPLATE.read_text())
    groups = cast(list[dict[str, Any]], parse_yaml(selected(text, f'slurm_cluster="{cluster.name}"')))
    kept_groups: list[dict[str, Any]] = []
    for group in groups:
        rules = [_with_link(rule, monitoring.runbooks or RUNBOOKS) for rule in group["rules"] if rule["alert"] not in monitoring.without]
        if rules:
            kept_groups.append({"name": f"{cluster.name}-{group['name']}", "rules": rules})
    return kept_groups


def _with_link(rule: dict[str, Any], runbooks: str) -> dict[str, Any]:
    link = f"{runbooks}#{rule['alert'].lower()}"
    return {**rule, "expr": " ".join(rule["expr"].split()), "annotations": {**rule["annotations"], "runbook_url": link}}
