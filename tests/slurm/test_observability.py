"""Prometheus and Alertmanager of the real image, with the files of the dev stack and recorded metrics: each panel of each dashboard has
data, each alert can be evaluated, fires on its fault and on nothing less, and reaches its receiver."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from components.observability import build_files
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.render.alerts import alert_names
from configs.render.dashboards import build_dashboards
from tests.support.configs.stacks import ROOT, edited
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.prometheus_site import Site, unpack

CASES = Path(__file__).parent / "alert_cases.yaml"
SMTP = {"host": "relay.example", "sender": "slurm@example.com", "domain": "example.com", "caSecret": "ca", "credentialsSecret": "login"}
RECEIVERS: list[dict[str, Any]] = [
    {"name": "chat", "kind": "slack", "urlSecret": "chat"},
    {"name": "hook", "kind": "webhook", "urlSecret": "hook", "severities": ["critical"], "match": {"alertname": "GpusMissing"}},
]
MAIL = {"name": "mail", "kind": "mail", "to": ["ops@example.com"]}


def stack(**monitoring: Any) -> Cluster:
    """The dev stack with other monitoring."""
    return load_cluster(edited("dev", {"monitoring": monitoring, "notifications": {"smtp": SMTP}}), ROOT, "x")


def alert_cases() -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], yaml.safe_load(CASES.read_text()))


def files_of(cluster: Cluster) -> dict[str, str]:
    assert cluster.monitoring is not None
    return build_files(cluster, cluster.monitoring)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Both programs, once every target has been read twice."""
    made = Site(unpack(tmp_path_factory.mktemp("observability")))
    try:
        for each in RECEIVERS:
            folder = made.root / "etc" / "slipway" / "receivers" / each["name"]
            folder.mkdir(parents=True)
            (folder / "url").write_text(f"http://127.0.0.1:{made.exporter.port}/{each['name']}")
        # An alert need not last long here: the times are those of the cases below.
        files = files_of(stack(receivers=RECEIVERS))
        files["alerts.yml"] = yaml.safe_dump({"groups": [_hasty(group) for group in yaml.safe_load(files["alerts.yml"])["groups"]]})
        files["alertmanager.yml"] = files["alertmanager.yml"].replace("group_wait: 30s", "group_wait: 1s")
        made.start(files)
        wait_for("two readings of each target", lambda: _is_read(made), 60)
        yield made
    except BaseException:
        print(made.logs())
        raise
    finally:
        made.close()


def _hasty(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "rules": [{key: value for key, value in rule.items() if key != "for"} for rule in group["rules"]]}


def _is_read(site: Site) -> bool:
    try:
        jobs = {target["labels"]["job"] for target in site.ask("targets")["activeTargets"]}
        read = {each["metric"]["job"] for each in site.query("count_over_time(up[1m]) >= 2 and up == 1")}
    except OSError:
        return False
    return bool(jobs) and read == jobs


PANELS = [
    pytest.param(target["expr"], id=f"{name.removesuffix('.json').removeprefix('slipway-')}: {panel['title']}: {target['refId']}")
    for name, text in build_dashboards().items()
    for panel in json.loads(text)["panels"]
    for target in panel["targets"]
]


@pytest.mark.parametrize("expression", PANELS)
def test_query_of_each_panel_has_data(site: Site, expression: str) -> None:
    asked = expression.replace("$cluster", "dev").replace("$__rate_interval", "1m")
    wait_for(f"data of {asked}", lambda: site.query(asked), 20)


def test_every_rule_can_be_evaluated_and_says_where_its_runbook_is(site: Site) -> None:
    def evaluated() -> list[dict[str, Any]]:
        rules = [rule for group in site.ask("rules")["groups"] for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    rules = wait_for("rules", evaluated, 30)
    assert {rule["name"]: rule.get("lastError", "") for rule in rules} == dict.fromkeys(alert_names(), "")
    assert [rule["name"] for rule in rules if f"#{rule['name'].lower()}" not in rule["annotations"]["runbook_url"]] == []


def test_alert_reaches_its_receivers_in_slacks_format_and_as_json(site: Site) -> None:
    def posted() -> dict[str, Any]:
        found = {path: body for path, body in site.exporter.posts if "GpusMissing" in json.dumps(body)}
        return found if len(found) == 2 else {}

    posts = wait_for("messages", posted, 60)
    [shown] = posts["/chat"]["attachments"]
    assert "nodes of gpu do not have the GPUs of the config" in shown["text"]
    assert "docs/operate/runbooks.md#gpusmissing" in shown["text"]
    assert {alert["labels"]["alertname"] for alert in posts["/hook"]["alerts"]} == {"GpusMissing"}
    assert [alert["labels"]["nodeset"] for alert in posts["/hook"]["alerts"]] == ["gpu"]


def test_alertmanager_takes_the_config_of_each_kind_of_receiver(site: Site) -> None:
    """The mail's own account comes in at the start: see alertmanager.sh."""
    text = files_of(stack(receivers=[*RECEIVERS, MAIL]))["alertmanager.yml"]
    (site.root / "tmp" / "all.yml").write_text(text)
    said = site.tool("amtool", "check-config", "/tmp/all.yml")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "4 receivers" in said.stdout


def test_prometheus_takes_the_config_of_each_example_stack(site: Site) -> None:
    for name in ("dev", "h100"):
        for file, text in files_of(load_cluster(edited(name, {"monitoring": {}}), ROOT, "x")).items():
            (site.root / "tmp" / file).write_text(text)
        said = site.tool("promtool", "check", "config", "--lint=all", "/tmp/prometheus.yml")
        assert said.returncode == 0, said.stdout + said.stderr


def test_each_alert_fires_on_its_fault_and_not_without(site: Site) -> None:
    """Prometheus' own unit tests of rules, with the times of the stack file."""
    rules = {rule["alert"]: rule for group in yaml.safe_load(files_of(stack())["alerts.yml"])["groups"] for rule in group["rules"]}
    files: list[str] = []
    for case in alert_cases():  # each with a file of its own rule, as promtool evaluates all that it has at each minute
        name = case["alert"]
        rule = {"groups": [{"name": name, "rules": [rules[name]]}]}
        hours = case["at"].endswith("h")
        test = {"rule_files": [f"{name}.rule.yml"], "evaluation_interval": "10m" if hours else "1m", "tests": promtool_tests(case)}
        (site.root / "tmp" / f"{name}.rule.yml").write_text(yaml.safe_dump(rule))
        (site.root / "tmp" / f"{name}.yml").write_text(yaml.safe_dump(test, sort_keys=False))
        files.append(f"/tmp/{name}.yml")
    said = site.tool("promtool", "test", "rules", *files)
    assert said.returncode == 0, said.stdout + said.stderr


def promtool_tests(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a case, one test for its fault and one for a cluster in order."""
    labels = {"alertname": case["alert"], "alertstate": "firing", "slurm_cluster": "dev", **case["labels"]}
    wanted = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    firing = {"labels": f"ALERTS{{{wanted}}}", "value": 1}
    asked = {"expr": f'ALERTS{{alertname="{case["alert"]}", alertstate="firing"}}', "eval_time": case["at"]}
    return [
        {
            "name": f"{case['alert']}: {state}",
            "interval": "10m" if case["at"].endswith("h") else "1m",
            "input_series": [{"series": _series(name), "values": values} for name, values in case[state].items()],
            "promql_expr_test": [{**asked, "exp_samples": samples}],
        }
        for state, samples in (("fault", [firing]), ("order", []))
        if state in case
    ]


def _series(name: str) -> str:
    return name.replace("@", 'slurm_cluster="dev"')


def test_each_alert_has_a_case_and_all_but_the_watchdog_one_of_order() -> None:
    assert [case["alert"] for case in alert_cases()] == list(alert_names())
    assert [case["alert"] for case in alert_cases() if not case.get("order")] == ["Watchdog"]


def test_killed_prometheus_keeps_its_data_and_raises_its_alerts_again(site: Site) -> None:
    wait_for("the alert", lambda: site.raised("GpusMissing"), 60)
    before = time.time()
    read = {each["metric"]["job"] for each in site.ask("query", query="up", time=str(before))["result"]}
    site.kill_prometheus()
    with pytest.raises(OSError, match="refused"):
        site.ask("targets")
    raised = site.raised("GpusMissing")
    assert raised, "Alertmanager does not wait for Prometheus to keep an alert"
    site.start_prometheus()
    wait_for("each target", lambda: _is_read(site), 60)
    assert {each["metric"]["job"] for each in site.ask("query", query="up", time=str(before))["result"]} == read
    wait_for("the alert again", lambda: site.raised("GpusMissing") not in ("", raised), 60)
