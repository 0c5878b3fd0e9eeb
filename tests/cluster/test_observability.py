"""The dev stack's own Prometheus after a known load: it reads every target, each panel of each dashboard has data, and Alertmanager has the
alert that always fires."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from configs.render.dashboards import build_dashboards
from slurm.check_results import CheckResult, Failure, with_result
from tests.support.cluster.dev_stack import NAMESPACE, DevStack, eventually

POD = f"/api/v1/namespaces/{NAMESPACE}/pods/dev-prometheus-0:9090/proxy/api/v1"
PROMETHEUS = "statefulset/dev-prometheus"
CHECK = CheckResult("failed", "2026-01-02T03:04:05Z", Failure("2026-01-02T03:04:05Z", "the link is slow"))


def ask(stack: DevStack, expression: str) -> list[dict[str, Any]]:
    """What an expression gives now; numbers that are none are left out, as Grafana shows nothing for them."""
    plain = expression.replace("$cluster", "dev").replace("$__rate_interval", "2m")
    found = json.loads(stack.reads.text(f"{POD}/query", query=plain))["data"]["result"]
    return [each for each in found if each["value"][1] != "NaN"]


@pytest.fixture(scope="module")
def loaded(deployed: DevStack) -> Iterator[DevStack]:
    """After a job that ended well, one that failed and one that woke a node; while one has all GPUs of a node, another waits for it, and a
    check has drained a node."""
    deployed.put_to_sleep()
    done = deployed.submit("#!/bin/bash\ntrue\n", "--partition=main")
    failed = deployed.submit("#!/bin/bash\nfalse\n", "--partition=gpu", "--gpus=1")
    woken = deployed.submit("#!/bin/bash\ntrue\n", "--partition=burst")
    deployed.wait_for_job(done)
    deployed.wait_for_job(failed, "FAILED")
    deployed.wait_for_job(woken)
    held = deployed.hold("--partition=gpu", "--nodelist=gpu-0", "--gpus=4")
    deployed.wait_for_job(held, "RUNNING")
    deployed.submit("#!/bin/bash\ntrue\n", "--partition=gpu", "--nodelist=gpu-0", "--gpus=4")
    deployed.slurm(f"scontrol update NodeName=cpu-1 Extra={shlex.quote(with_result('', 'mpi', CHECK) or '')}")
    eventually("the drain", lambda: "DRAIN" in deployed.nodes()["cpu-1"], 60)
    yield deployed
    deployed.slurm("scontrol update NodeName=cpu-1 Extra={}")
    deployed.let_go()
    deployed.quiet()


def test_every_target_is_read(loaded: DevStack) -> None:
    down = 'up{slurm_cluster="dev", job!="dcgm"} == 0'
    eventually("all targets are read", lambda: len(ask(loaded, "up")) > 8 and not ask(loaded, down), 120)


def test_query_of_each_panel_of_each_dashboard_has_data(loaded: DevStack) -> None:
    boards = [json.loads(text) for text in build_dashboards().values()]
    panels = [(f"{board['title']}: {panel['title']}", panel["targets"]) for board in boards for panel in board["panels"]]
    empty = {(name, target["expr"]) for name, targets in panels for target in targets}
    assert len(empty) > 60

    def all_have_data() -> bool:
        """Asks again for those that had none."""
        empty.difference_update([each for each in empty if ask(loaded, each[1])])
        assert not empty
        return True

    eventually("data in each panel", all_have_data, 120, every_s=5)


def test_no_rule_fails(loaded: DevStack) -> None:
    said = loaded.reads.text(f"{POD}/rules")
    rules = [rule for group in json.loads(said)["data"]["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule.get("lastError")} == {}
    assert len(rules) > 20


def test_watchdog_is_at_alertmanager(loaded: DevStack) -> None:
    command = ("amtool", "--alertmanager.url=http://localhost:9093", "alert", "query", "--output=json", "alertname=Watchdog")

    def there() -> bool:
        return bool(json.loads(loaded.kubectl("exec", "dev-prometheus-0", "-c", "alertmanager", "--", *command)))

    eventually("Watchdog is at Alertmanager", there, 90)


@pytest.fixture
def unobserved(loaded: DevStack) -> Iterator[DevStack]:
    """Without Prometheus and Alertmanager; at the end both are back, and know all again."""
    loaded.pause_guard(PROMETHEUS)
    try:
        loaded.kubectl("scale", PROMETHEUS, "--replicas=0")
        eventually("no Prometheus", lambda: not loaded.kubectl("get", "pod", "dev-prometheus-0", "--ignore-not-found"), 60)
        yield loaded
    finally:
        loaded.kubectl("scale", PROMETHEUS, "--replicas=1")
        loaded.resume_guard(PROMETHEUS)
    test_every_target_is_read(loaded)
    test_watchdog_is_at_alertmanager(loaded)


def test_faults_are_drained_and_lifted_and_jobs_run_without_prometheus(unobserved: DevStack) -> None:
    unobserved.slurm("scontrol update NodeName=cpu-1 Extra={}")
    eventually("the drain is lifted", lambda: "DRAIN" not in unobserved.nodes()["cpu-1"], 60)
    unobserved.wait_for_job(unobserved.submit("#!/bin/bash\ntrue\n", "--partition=main", "--nodelist=cpu-1"))
    unobserved.slurm(f"scontrol update NodeName=cpu-1 Extra={shlex.quote(with_result('', 'mpi', CHECK) or '')}")
    eventually("the drain", lambda: "DRAIN" in unobserved.nodes()["cpu-1"], 60)
