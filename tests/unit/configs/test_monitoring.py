"""Alerts, receivers and dashboards: what the stack file may say, and that all of them speak of metrics that exist."""

import json
import re
from typing import Any

import pytest
import yaml

from components.observability import build_files, build_operator_objects, mebibytes, receiver_secrets
from components.scrapes import scrape_configs, targets
from configs.faults import ConfigFaults
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.models.monitoring import Monitoring
from configs.render.alerts import alert_names, build_alerts
from configs.render.dashboards import build_dashboards
from tests.support.configs.stacks import ROOT, edited

RECORDED = ROOT / "tests/support/fakes/metrics"
RUNBOOKS = ROOT / "docs" / "operate" / "runbooks.md"
OTHERS = frozenset(
    {
        *("up", "ALERTS", "process_start_time_seconds", "process_resident_memory_bytes", "process_cpu_seconds_total"),
        *("kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes"),
        *("prometheus_notifications_errors_total", "prometheus_rule_evaluation_failures_total", "alertmanager_notifications_failed_total"),
    }
)
"""Metrics of Prometheus, Alertmanager, the kubelet and every Python program."""
_SELECTED = re.compile(r"([a-zA-Z_:][\w:]*)\{")
SMTP = {"host": "relay.example", "sender": "slurm@example.com", "domain": "example.com", "caSecret": "ca", "credentialsSecret": "login"}
CHAT: dict[str, Any] = {"name": "chat", "kind": "slack", "urlSecret": "chat"}
MAIL: dict[str, Any] = {"name": "mail", "kind": "mail", "to": ["ops@example.com"]}


def cluster_of(monitoring: dict[str, Any], **more: Any) -> Cluster:
    return load_cluster(edited("dev", {"monitoring": monitoring, **more}), ROOT, "x")


def said(cluster: Cluster) -> Monitoring:
    assert cluster.monitoring is not None
    return cluster.monitoring


def recorded() -> set[str]:
    """Names of all metrics that slurmctld, the controllers, the collector and DCGM's exporter serve."""
    lines = (line for file in RECORDED.glob("*.txt") for line in file.read_text().splitlines() if line and line[0] != "#")
    return {re.split(r"[{ ]", line)[0] for line in lines}


def named_in(expression: str) -> set[str]:
    """The metrics of an expression: in this code, each has a selector."""
    return set(_SELECTED.findall(expression))


PANELS = {
    f"{name}: {panel['title']}": [target["expr"] for target in panel["targets"]]
    for name, text in build_dashboards().items()
    for panel in json.loads(text)["panels"]
}


@pytest.mark.parametrize("expressions", PANELS.values(), ids=PANELS)
def test_panel_asks_for_metrics_that_exist_and_for_one_cluster(expressions: list[str]) -> None:
    for expression in expressions:
        assert named_in(expression)
        assert named_in(expression) <= recorded() | OTHERS
        assert expression.count("{") == expression.count('slurm_cluster="$cluster"')


def test_alerts_ask_for_metrics_that_exist() -> None:
    cluster = cluster_of({})
    rules = [rule for group in build_alerts(cluster, said(cluster)) for rule in group["rules"]]
    assert {rule["alert"]: named_in(rule["expr"]) - recorded() - OTHERS for rule in rules} == {name: set[str]() for name in alert_names()}


def test_each_alert_has_its_runbook_and_each_runbook_its_alert() -> None:
    assert re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE) == list(alert_names())


def test_thresholds_of_alerts_are_named_in_the_runbooks() -> None:
    fields = {field.alias for field in type(Monitoring().thresholds).model_fields.values()}
    assert {name for name in fields if f"`{name}`" not in RUNBOOKS.read_text()} == set()


def test_alert_says_in_plain_words_what_happened() -> None:
    cluster = cluster_of({})
    for group in build_alerts(cluster, said(cluster)):
        for rule in group["rules"]:
            assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
            assert rule["annotations"]["description"].endswith(".")
            assert "@" not in json.dumps(rule)


def test_thresholds_and_alerts_that_are_left_out() -> None:
    cluster = cluster_of({"thresholds": {"drainedMinutes": 7}, "without": ["Watchdog"], "runbooks": "https://x.example/r"})
    rules = {rule["alert"]: rule for group in build_alerts(cluster, said(cluster)) for rule in group["rules"]}
    assert set(rules) == set(alert_names()) - {"Watchdog"}
    assert rules["NodesDown"]["for"] == "7m"
    assert rules["NodesDown"]["annotations"]["runbook_url"] == "https://x.example/r#nodesdown"


def test_operator_and_own_prometheus_have_the_same_targets_and_rules() -> None:
    cluster = cluster_of({"prometheus": "Operator", "labels": {"release": "x"}})
    *monitors, rules = build_operator_objects(cluster, said(cluster))
    endpoints = [each for one in monitors for each in one["spec"].get("endpoints", []) + one["spec"].get("podMetricsEndpoints", [])]
    jobs = [next(each["replacement"] for each in one["relabelings"] if each["targetLabel"] == "job") for one in endpoints]
    assert jobs == [target.job for target in targets(cluster)]
    assert [*jobs, "prometheus", "alertmanager"] == [each["job_name"] for each in scrape_configs(cluster)]
    assert all(one["metadata"]["labels"]["release"] == "x" for one in (*monitors, rules))
    own = yaml.safe_load(build_files(cluster_of({}), said(cluster_of({})))["alerts.yml"])
    assert rules["spec"] == own


@pytest.mark.parametrize(
    ("words", "is_read"),
    [pytest.param("jobs", False, id="jobs"), pytest.param("none", True, id="none"), pytest.param("Reservations", False, id="any-kind")],
)
def test_slurmctld_is_not_read_where_private_data_closes_its_metrics(words: str, is_read: bool) -> None:
    """It answers 401 then: its targets would be down for ever, and alert."""
    jobs = {target.job for target in targets(cluster_of({}, slurm={"settings": {"PrivateData": words}}))}
    assert ("slurmctld-jobs" in jobs, "metrics" in jobs) == (is_read, True)


def test_gpus_are_read_on_the_nodes_that_have_them_and_only_there() -> None:
    [gpus] = [each for each in scrape_configs(cluster_of({})) if each["job_name"] == "dcgm"]
    [group] = gpus["static_configs"]
    assert group["labels"] == {"nodeset": "gpu"}
    assert group["targets"] == [f"gpu-{at}.dev-slurmd.slurm.svc.cluster.local:9400" for at in range(2)]


def test_no_address_and_no_password_is_in_the_files() -> None:
    cluster = cluster_of({"receivers": [CHAT, MAIL]}, notifications={"smtp": SMTP})
    text = build_files(cluster, said(cluster))["alertmanager.yml"]
    config = yaml.safe_load(text)
    [slack], [mail] = config["receivers"][1]["slack_configs"], config["receivers"][2]["email_configs"]
    assert slack["api_url_file"] == "/etc/slipway/receivers/chat/url"
    assert mail["auth_password_file"] == "/etc/slipway/receivers/relay-credentials/password"
    assert mail["auth_username"] == "@username@"
    assert receiver_secrets(cluster, said(cluster)) == {"chat": "chat", "relay-credentials": "login", "relay-ca": "ca"}


def test_receiver_gets_its_severities_and_labels() -> None:
    receiver = {**CHAT, "severities": ["info", "warning"], "match": {"account": 'a"b'}}
    cluster = cluster_of({"receivers": [receiver]})
    [route] = yaml.safe_load(build_files(cluster, said(cluster))["alertmanager.yml"])["route"]["routes"]
    assert route["matchers"] == ['account="a\\"b"', 'severity=~"info|warning"']


def test_dead_mans_switch_hears_the_watchdog_every_five_minutes() -> None:
    cluster = cluster_of({"receivers": [CHAT, {**CHAT, "name": "alive", "severities": ["none"]}]})
    routes = yaml.safe_load(build_files(cluster, said(cluster))["alertmanager.yml"])["route"]["routes"]
    assert [route.get("repeat_interval") for route in routes] == [None, "5m"]


NOBODY: list[str] = []
MISTAKES: list[Any] = [
    pytest.param({"prometheus": "Operator", "readers": ["x"]}, "readers", "does nothing with prometheus: Operator", id="operators-readers"),
    pytest.param({"prometheus": "Operator", "retentionDays": 3}, "retentionDays", "does nothing", id="operators-retention"),
    pytest.param({"labels": {"release": "x"}}, "labels", "does nothing with prometheus: Own", id="own-labels"),
    pytest.param({"receivers": [CHAT, CHAT]}, "receivers[1].name", "already", id="one-name-twice"),
    pytest.param({"receivers": [{**CHAT, "urlSecret": None}]}, "receivers[0].urlSecret", "name a Secret", id="no-address"),
    pytest.param({"receivers": [{**CHAT, "to": ["a@b.example"]}]}, "receivers[0].to", "addresses of mail", id="chat-with-mail"),
    pytest.param({"receivers": [MAIL]}, "receivers[0].kind", "give notifications.smtp", id="mail-without-relay"),
    pytest.param({"receivers": [{**MAIL, "to": NOBODY}]}, "receivers[0].to", "at least one address", id="mail-to-nobody"),
    pytest.param({"receivers": [{**MAIL, "urlSecret": "x"}]}, "receivers[0].urlSecret", "kind: mail", id="mail-with-address"),
    pytest.param({"receivers": [{**CHAT, "name": "nobody"}]}, "receivers[0].name", "Slipway's own", id="own-name"),
    pytest.param({"receivers": [{**CHAT, "severities": NOBODY}]}, "receivers[0].severities", "gets no alert", id="no-severity"),
    pytest.param({"receivers": [{**CHAT, "match": {"alertname": "NodeDown"}}]}, "receivers[0].match.alertname", "NodesDown", id="match"),
    pytest.param({"without": ["GuardStoped"]}, "without[0]", 'Did you mean "GuardStopped"', id="unknown-alert"),
    pytest.param({"without": ["Watchdog", "Watchdog"]}, "without[1]", "", id="twice-without"),
]


@pytest.mark.parametrize(("monitoring", "path", "words"), MISTAKES)
def test_mistake_is_told_with_its_path(monitoring: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ConfigFaults) as refused:
        cluster_of(monitoring)
    found = [fault for fault in refused.value.faults if fault.path == f"cluster.monitoring.{path}"]
    assert any(words in fault.message for fault in found), refused.value.faults


@pytest.mark.parametrize(("size", "number"), [("20Gi", 20480), ("512Mi", 512), ("2Ti", 2 * 1024**2), ("1G", 953.67)])
def test_sizes_in_mebibytes(size: str, number: float) -> None:
    assert mebibytes(size) == pytest.approx(number, abs=0.01)


def test_dashboards_are_those_of_the_golden_files() -> None:
    file = ROOT / "tests" / "golden" / "plan" / "dev" / "ConfigMap.yaml"
    shown = yaml.safe_load(file.read_text())["dev-dashboards"]["data"]
    assert {name: each["title"] for name, each in shown.items()} == {
        name: json.loads(text)["title"] for name, text in build_dashboards().items()
    }
