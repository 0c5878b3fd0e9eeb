"""The web page's objects: rights to read two kinds, no way out but to Slurm and the API server, nothing that Slurm hides."""

from typing import Any

import pytest

from components import page
from components.labels import Manifest, selector
from configs.models.page import Page
from configs.models.slurm import SlurmSettings
from tests.support.components.examples import CONTROLLERS_PODS
from tests.support.components.stacks import DEV
from tests.unit.components.structure import structural_faults

PAGE = Page(hosts=("slurm.example.com",))
DEPLOYMENT = page.build_deployment(DEV, CONTROLLERS_PODS, PAGE)
ROLES = {each["kind"]: each for each in page.build_roles(CONTROLLERS_PODS)}
ALL: dict[str, Manifest] = {
    **ROLES,
    "ServiceAccount": page.build_service_account(CONTROLLERS_PODS),
    "NetworkPolicy": page.build_network_policy(CONTROLLERS_PODS),
    "Service": page.build_service(CONTROLLERS_PODS),
    "Deployment": DEPLOYMENT,
}


def pod() -> dict[str, Any]:
    return DEPLOYMENT["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", ALL.values(), ids=ALL)
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def test_role_reads_node_sets_and_slurm_nodes_and_nothing_else() -> None:
    granted = [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in ROLES["Role"]["rules"]]
    assert granted == [(["slipway.dev"], ["nodesets"], ["list", "watch"]), (["slipway.dev"], ["slurmnodes"], ["list", "watch"])]
    assert ROLES["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "dev-page", "namespace": "slurm"}]


def test_service_leads_to_the_page_from_inside_the_cluster_only() -> None:
    spec = ALL["Service"]["spec"]
    assert spec.get("type", "ClusterIP") == "ClusterIP"
    assert spec["selector"] == selector("dev", "page") == DEPLOYMENT["spec"]["selector"]["matchLabels"]
    [container] = pod()["containers"]
    assert spec["ports"][0]["targetPort"] == container["ports"][0]["containerPort"] == 8080


def test_network_lets_out_to_names_the_api_server_and_the_lists_of_slurm() -> None:
    policy = ALL["NetworkPolicy"]["spec"]
    opened = {(each["port"], each["protocol"]) for rule in policy["egress"] for each in rule["ports"]}
    assert opened == {(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP"), (6821, "TCP")}


@pytest.mark.parametrize(
    ("slurm", "hidden"),
    [
        pytest.param({}, [], id="nothing-said"),
        pytest.param({"settings": {"PrivateData": "jobs"}}, ["jobs"], id="jobs"),
        pytest.param({"settings": {"privatedata": "usage,nodes,jobs"}}, ["jobs", "nodes"], id="any-case"),
        pytest.param({"settings": {"PrivateData": "accounts,users"}}, [], id="others"),
        pytest.param({"raw": ["PrivateData=nodes"]}, ["nodes"], id="raw-line"),
    ],
)
def test_what_private_data_hides_is_told_to_the_program(slurm: dict[str, Any], hidden: list[str]) -> None:
    cluster = DEV.model_copy(update={"slurm": SlurmSettings(**slurm)})
    assert page.hidden(cluster, Page()) == set(hidden)
    told = page.build_deployment(cluster, CONTROLLERS_PODS, Page())["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {each["name"]: each["value"] for each in told}.get("SLIPWAY_HIDDEN") == (",".join(hidden) or None)


def test_page_hides_what_its_own_config_says_too() -> None:
    cluster = DEV.model_copy(update={"slurm": SlurmSettings(settings={"PrivateData": "nodes"})})
    assert page.hidden(cluster, Page(hide=("jobs",))) == {"jobs", "nodes"}


def test_page_answers_to_its_services_names_and_those_of_the_stack_file() -> None:
    own = ["dev-page", "dev-page.slurm", "dev-page.slurm.svc", "dev-page.slurm.svc.cluster.local"]
    said = {each["name"]: each["value"] for each in pod()["containers"][0]["env"]}
    assert said["SLIPWAY_HOSTS"].split(",") == [*own, "slurm.example.com"]
