"""Who may connect where, by the policies of both example stacks as Kubernetes reads them, and by the table in docs/explain/security.md."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from components.labels import labels
from components.network import CALLERS, EVERYBODY, NOT_USERS, USERS
from tests.support.components import program

COMPONENT = "app.kubernetes.io/component"
HAVE_OTHERS = {"login", "nfs", "prometheus", "slurmd"}
"""Components with ports that are not in the table: all log in, jobs talk to each other, and two have policies by networks and readers."""


@pytest.fixture(scope="module", params=["dev", "h100"])
def stack(request: pytest.FixtureRequest) -> list[Mapping[str, Any]]:
    """The inputs of all Kubernetes objects."""
    return [each.inputs for each in program.run(request.param, program.stack_config(request.param)) if each.type.startswith("kubernetes:")]


def policies(stack: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Their specs, by component."""
    found = [each for each in stack if each.get("kind") == "NetworkPolicy"]
    return {each["spec"]["podSelector"]["matchLabels"][COMPONENT]: each["spec"] for each in found}


def containers(stack: list[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those of all workloads but node sets, each with its component."""
    for each in stack:
        template = each.get("spec", {}).get("template", {})
        for container in template["spec"]["containers"] if "metadata" in template else ():
            yield template["metadata"]["labels"][COMPONENT], container


def lets_in(spec: Mapping[str, Any], component: str, port: int) -> bool:
    """Whether a pod of this component of the same cluster may connect."""
    caller = labels(spec["podSelector"]["matchLabels"]["app.kubernetes.io/instance"], component)
    rules = [rule for rule in spec["ingress"] if port in {each["port"] for each in rule["ports"]}]
    return any("from" not in rule or any(_is_meant(source["podSelector"], caller) for source in rule["from"]) for rule in rules)


def _is_meant(selector: Mapping[str, Any], caller: Mapping[str, str]) -> bool:
    has_labels = selector.get("matchLabels", {}).items() <= caller.items()
    lacks = [each for each in selector.get("matchExpressions", []) if each["operator"] == "NotIn"]
    assert len(lacks) == len(selector.get("matchExpressions", []))
    return has_labels and all(caller.get(each["key"]) not in each["values"] for each in lacks)


def test_every_port_of_a_workload_is_in_the_table_and_has_its_policy(stack: list[Mapping[str, Any]]) -> None:
    made = policies(stack)
    seen = {(component, port["containerPort"]) for component, each in containers(stack) for port in each.get("ports", [])}
    missing = {(component, port) for component, port in seen if component not in HAVE_OTHERS and port not in CALLERS.get(component, {})}
    assert missing == set()
    for component in {component for component, _ in seen} - HAVE_OTHERS:
        opened = {each["port"] for rule in made[component]["ingress"] for each in rule["ports"]}
        assert opened == CALLERS[component].keys()


def test_callers_of_the_table_are_components() -> None:
    """A name that no pod has would close a port to all."""
    known = {*CALLERS, *USERS, "backup"}
    assert {each for ports in CALLERS.values() for callers in ports.values() for each in callers} <= {*known, *EVERYBODY, *NOT_USERS}


@pytest.mark.parametrize(
    ("component", "open_to"),
    [
        pytest.param("login", {6817, 6819, 6820, 6824, 8080}, id="login"),
        pytest.param("slurmd", {6817, 6819, 6820, 6823, 6824, 8080}, id="worker"),
    ],
)
def test_pods_of_users_reach_what_users_need(stack: list[Mapping[str, Any]], component: str, open_to: set[int]) -> None:
    made = policies(stack)
    reached = {
        (name, port) for name, ports in CALLERS.items() for port in (*ports, 8082) if name in made and lets_in(made[name], component, port)
    }
    assert {port for _, port in reached} - open_to == set()
    assert {name for name, port in reached if port == 8080} <= {"page"}
    assert {("slurmctld", 6817), ("slurmrestd", 6820)} <= reached


def test_who_may_go_out_to_a_port_is_let_in_there(stack: list[Mapping[str, Any]]) -> None:
    made = policies(stack)
    for component, spec in made.items():
        for rule in spec.get("egress", []):
            for target in rule.get("to", []):
                if (name := target.get("podSelector", {}).get("matchLabels", {}).get(COMPONENT)) in made:
                    ports = [cast(int, each["port"]) for each in rule["ports"]]
                    assert [port for port in ports if not lets_in(made[name], component, port)] == [], (component, name)


def test_page_on_security_has_the_table() -> None:
    rows = [f"| {component} | {port} | {', '.join(callers)} |" for component, ports in CALLERS.items() for port, callers in ports.items()]
    assert "\n".join(rows) in (program.ROOT / "docs/explain/security.md").read_text()
