"""What RBAC gives the NodeSet controller, asked of the API server itself: all of the table, and nothing beside it."""

import json
import time
from typing import Any

import pytest

from components.controllers import build_roles, build_service_account, rights
from tests.apiserver.server import ApiServer
from tests.unit.components.examples import CONTROLLERS

USER = "system:serviceaccount:slurm:dev-nodeset-controller"


@pytest.fixture(scope="module")
def granted(server: ApiServer) -> ApiServer:
    """The server with the roles of the example cluster, which it may take a while to see. What is missing then is for the tests to say."""
    server.make_namespace("slurm")
    items = [build_service_account(CONTROLLERS), *build_roles(CONTROLLERS)]
    server.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    places = {"cluster": "", "namespace": "slurm"}
    deadline = time.monotonic() + 60
    seen = False
    while not seen and time.monotonic() < deadline:  # the authorizer learns of them by a watch
        seen = all(may(server, one["verbs"][0], one["group"], one["resource"], places[one["scope"]]) for one in rights())
    return server


def may(server: ApiServer, verb: str, group: str, resource: str, namespace: str) -> bool:
    """Whether the controller may do this."""
    resource, _, subresource = resource.partition("/")
    about: dict[str, Any] = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace}
    review = {"user": USER, "groups": ["system:serviceaccounts", "system:authenticated"], "resourceAttributes": about}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return server.post(path, {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": review})["status"]["allowed"]


@pytest.mark.parametrize("right", [pytest.param(one, id=one["resource"].replace("/", "-")) for one in rights()])
def test_what_the_table_says_is_granted_where_it_says(granted: ApiServer, right: dict[str, Any]) -> None:
    everywhere = right["scope"] == "cluster"
    for verb in right["verbs"]:
        assert may(granted, verb, right["group"], right["resource"], "" if everywhere else "slurm"), verb
        assert may(granted, verb, right["group"], right["resource"], "default") == everywhere, verb


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param("get", "", "secrets", id="secrets"),
        pytest.param("create", "", "pods/exec", id="exec"),
        pytest.param("create", "slipway.dev", "nodesets", id="make-a-set"),
        pytest.param("deletecollection", "slipway.dev", "nodesets", id="delete-all-sets-at-once"),
        pytest.param("delete", "", "configmaps", id="delete-files"),
        pytest.param("patch", "", "nodes", id="change-machines"),
        pytest.param("create", "rbac.authorization.k8s.io", "rolebindings", id="grant-more"),
        pytest.param("delete", "policy", "poddisruptionbudgets", id="delete-a-budget"),
    ],
)
def test_nothing_beside_it_is(granted: ApiServer, verb: str, group: str, resource: str) -> None:
    assert not may(granted, verb, group, resource, "slurm")
