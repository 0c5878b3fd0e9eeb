"""What RBAC gives the controllers, asked of the API server itself: all of the tables, and nothing beside them."""

import json
import time
from typing import Any

import pytest

from components import controllers, ec2, guard, page
from configs.models.ec2 import Ec2
from configs.models.node_set import Remedies
from tests.support.apiserver.server import ApiServer
from tests.support.components.examples import PODS
from tests.support.components.stacks import repairing
from tests.support.patience import patience

CONTROLLER, GUARD, PAGE, EC2 = "dev-nodeset-controller", "dev-guard", "dev-page", "dev-ec2"
TABLES = {
    CONTROLLER: controllers.rights(),
    GUARD: [{**right, "scope": "namespace"} for right in guard.rights()],
    PAGE: [{**right, "scope": "namespace"} for right in page.rights()],
    EC2: ec2.rights("dev"),
}
RIGHTS = [(account, right) for account, table in TABLES.items() for right in table]


@pytest.fixture(scope="module")
def granted(server: ApiServer) -> ApiServer:
    """The server with the roles of the example cluster, which it may take a while to see. What is missing then is for the tests to say."""
    server.make_namespace("slurm")
    deleting = repairing(Remedies(steps=("ReplaceMachine",), machines="DeleteNode"))
    items = [controllers.build_service_account(PODS), *controllers.build_roles(deleting, PODS)]
    items += [guard.build_service_account(PODS), *guard.build_roles(PODS)]
    items += [page.build_service_account(PODS), *page.build_roles(PODS)]
    items += [ec2.build_service_account(PODS, Ec2(region="eu-west-1")), *ec2.build_roles(PODS)]
    server.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    places = {"cluster": "", "namespace": "slurm"}
    began = time.monotonic()
    seen = False
    while not seen and time.monotonic() - began < 60 * patience():  # the authorizer learns of them by a watch
        seen = all(
            may(server, who, one["verbs"][0], one["group"], one["resource"], places[one["scope"]], one.get("name", ""))
            for who, one in RIGHTS
        )
    return server


def may(server: ApiServer, account: str, verb: str, group: str, resource: str, namespace: str, name: str = "") -> bool:
    """Whether an account may do this, to any object or to that of the name."""
    resource, _, subresource = resource.partition("/")
    about: dict[str, Any] = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace}
    about |= {"name": name} if name else {}
    review = {
        "user": f"system:serviceaccount:slurm:{account}",
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": about,
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return server.post(path, {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": review})["status"]["allowed"]


@pytest.mark.parametrize(
    ("account", "right"),
    [
        pytest.param(account, one, id=f"{account[4:]}-{one['resource'].replace('/', '-')}{'-of-a-name' if 'name' in one else ''}")
        for account, one in RIGHTS
    ],
)
def test_what_the_table_says_is_granted_where_it_says(granted: ApiServer, account: str, right: dict[str, Any]) -> None:
    everywhere = right["scope"] == "cluster"
    for verb in right["verbs"]:
        name = right.get("name", "")
        assert may(granted, account, verb, right["group"], right["resource"], "" if everywhere else "slurm", name), verb
        assert may(granted, account, verb, right["group"], right["resource"], "default", name) == everywhere, verb


@pytest.mark.parametrize(
    ("account", "verb", "group", "resource"),
    [
        pytest.param(CONTROLLER, "get", "", "secrets", id="secrets"),
        pytest.param(CONTROLLER, "create", "", "pods/exec", id="exec"),
        pytest.param(CONTROLLER, "create", "slipway.dev", "nodesets", id="make-a-set"),
        pytest.param(CONTROLLER, "deletecollection", "slipway.dev", "nodesets", id="delete-all-sets-at-once"),
        pytest.param(CONTROLLER, "delete", "", "configmaps", id="delete-files"),
        pytest.param(CONTROLLER, "patch", "", "nodes", id="change-machines"),
        pytest.param(CONTROLLER, "create", "rbac.authorization.k8s.io", "rolebindings", id="grant-more"),
        pytest.param(CONTROLLER, "delete", "policy", "poddisruptionbudgets", id="delete-a-budget"),
        *(
            pytest.param(GUARD, verb, right["group"], right["resource"], id=f"guard-{verb}-{right['resource']}")
            for right in guard.rights()
            for verb in ("delete", "deletecollection")
        ),
        pytest.param(GUARD, "create", "", "pods", id="guard-makes-pods"),
        pytest.param(GUARD, "create", "", "pods/exec", id="guard-exec"),
        pytest.param(GUARD, "create", "", "serviceaccounts/token", id="guard-tokens"),
        pytest.param(GUARD, "patch", "", "persistentvolumeclaims", id="guard-claims"),
        pytest.param(GUARD, "patch", "slipway.dev", "nodesets/status", id="guard-status-of-a-set"),
        pytest.param(GUARD, "create", "rbac.authorization.k8s.io", "rolebindings", id="guard-grants-more"),
        pytest.param(GUARD, "patch", "rbac.authorization.k8s.io", "roles", id="guard-widens-a-role"),
        pytest.param(GUARD, "get", "events.k8s.io", "events", id="guard-reads-events"),
        pytest.param(PAGE, "get", "", "secrets", id="page-secrets"),
        pytest.param(PAGE, "list", "", "pods", id="page-pods"),
        pytest.param(PAGE, "patch", "slipway.dev", "slurmnodes", id="page-writes"),
        pytest.param(PAGE, "delete", "slipway.dev", "nodesets", id="page-deletes"),
        pytest.param(PAGE, "create", "", "pods/exec", id="page-exec"),
        pytest.param(EC2, "get", "", "configmaps", id="ec2-reads-other-config-maps"),
        pytest.param(EC2, "patch", "", "configmaps", id="ec2-changes-other-config-maps"),
        pytest.param(EC2, "list", "", "configmaps", id="ec2-lists-config-maps"),
        pytest.param(EC2, "patch", "", "nodes", id="ec2-labels-or-taints-machines"),
        pytest.param(EC2, "delete", "", "nodes", id="ec2-deletes-machines"),
        pytest.param(EC2, "delete", "", "pods", id="ec2-deletes-pods"),
        pytest.param(EC2, "get", "", "secrets", id="ec2-secrets"),
    ],
)
def test_nothing_beside_it_is(granted: ApiServer, account: str, verb: str, group: str, resource: str) -> None:
    assert not may(granted, account, verb, group, resource, "slurm")
