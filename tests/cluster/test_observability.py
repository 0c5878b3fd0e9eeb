"""The dev stack's own Prometheus after a known load: it reads every target, each panel of each dashboard has data, and Alertmanager has the
alert that always fires."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from configs.render.dashboards import build_dashboards
from tests.cluster.dev_stack import NAMESPACE, DevStack, eventually

POD = f"/api/v1/namespaces/{NAMESPACE}/pods/dev-prometheus-0:9090/proxy/api/v1"


def ask(stack: DevStack, expression: str) -> list[dict[str, Any]]:
    """What an expression gives now; numbers that are none are left out, as Grafana shows nothing for them."""
    plain = expression.replace("$cluster", "dev").replace("$__rate_interval", "2m")
    command = ("promtool", "query", "instant", "--format=json", "http://localhost:9090", plain)
    said = stack.kubectl("exec", "dev-prometheus-0", "-c", "prometheus", "--", *command)
    return [each for each in json.loads(said) if each["value"][1] != "NaN"]


@pytest.fixture(scope="module")
def loaded(deployed: DevStack) -> Iterator[DevStack]:
    """After a job that ended well, one that failed and one that woke a node; while one has all GPUs of a node, and another waits for it."""
    done = deployed.submit("#!/bin/bash\ntrue\n", "--partition=main")
    failed = deployed.submit("#!/bin/bash\nfalse\n", "--partition=gpu", "--gpus=1")
    woken = deployed.submit("#!/bin/bash\ntrue\n", "--partition=burst")
    deployed.wait_for_job(done)
    deployed.wait_for_job(failed, "FAILED")
    deployed.wait_for_job(woken)
    held = deployed.hold("--partition=gpu", "--nodelist=gpu-0", "--gpus=4")
    deployed.wait_for_job(held, "RUNNING")
    deployed.submit("#!/bin/bash\ntrue\n", "--partition=gpu", "--nodelist=gpu-0", "--gpus=4")
    yield deployed
    deployed.let_go()
    deployed.quiet()


def test_every_target_is_read(loaded: DevStack) -> None:
    down = 'up{slurm_cluster="dev", job!="dcgm"} == 0'
    eventually("all targets are read", lambda: len(ask(loaded, "up")) > 8 and not ask(loaded, down), 120)


PANELS = [
    pytest.param([target["expr"] for target in panel["targets"]], id=f"{json.loads(text)['title']}: {panel['title']}")
    for text in build_dashboards().values()
    for panel in json.loads(text)["panels"]
]


@pytest.mark.parametrize("expressions", PANELS)
def test_query_of_each_panel_has_data(loaded: DevStack, expressions: list[str]) -> None:
    for expression in expressions:
        eventually(f"data of {expression}", lambda expression=expression: ask(loaded, expression), 90)


def test_no_rule_fails(loaded: DevStack) -> None:
    said = loaded.kubectl("get", "--raw", f"{POD}/rules")
    rules = [rule for group in json.loads(said)["data"]["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule.get("lastError")} == {}
    assert len(rules) > 20


def test_watchdog_is_at_alertmanager(loaded: DevStack) -> None:
    command = ("amtool", "--alertmanager.url=http://localhost:9093", "alert", "query", "--output=json", "alertname=Watchdog")

    def there() -> bool:
        return bool(json.loads(loaded.kubectl("exec", "dev-prometheus-0", "-c", "alertmanager", "--", *command)))

    eventually("Watchdog is at Alertmanager", there, 90)
