"""A real API server takes the Job with which the controller starts a health check, as it takes kubectl's from the same CronJob."""

import json
from typing import Any

import msgspec
import pytest

from components.health_checks import build_cron_job
from configs.models.health_checks import HealthCheck
from controllers.nodeset.check_jobs import CRON_JOBS, JOBS, KEPT_S, CronJob, build_job
from names import variables
from slurm.check_results import Request, requests_text
from tests.support.apiserver.server import ApiServer
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV

SPACE = "check-jobs"
REQUESTS = {"gpu-0": Request("aws:///eu-west-1a/i-0abc", "2026-01-01T00:00:00Z")}
CHECKS = [check for check in DEV.health_checks if "job" in check.contexts]


def get(server: ApiServer, path: str) -> dict[str, Any]:
    with server.client() as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def space(server: ApiServer) -> str:
    server.make_namespace(SPACE)
    return SPACE


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_job_equals_that_of_kubectl_except_for_nodes_and_lifetime(server: ApiServer, space: str, check: HealthCheck) -> None:
    manifest = build_cron_job(DEV, PODS, check)
    manifest["metadata"]["namespace"] = space
    name = manifest["metadata"]["name"]
    server.post(CRON_JOBS.path(space), manifest)
    cron_job = msgspec.json.decode(json.dumps(get(server, CRON_JOBS.path(space, name))).encode(), type=CronJob)
    asked = build_job(cron_job, "dev", check.name, REQUESTS)
    server.post(JOBS.path(space), asked)
    with server.client() as client:
        assert client.post(JOBS.path(space), json=asked).json()["reason"] == "AlreadyExists"

    server.run_kubectl("-n", space, "create", "job", f"--from=cronjob/{name}", f"{name}-now")
    ours, theirs = (get(server, JOBS.path(space, f"{name}-{end}")) for end in ("asked", "now"))
    assert ours["metadata"]["ownerReferences"] == theirs["metadata"]["ownerReferences"]
    assert ours["metadata"]["annotations"] == theirs["metadata"]["annotations"]
    assert ours["spec"].pop("ttlSecondsAfterFinished") == KEPT_S
    [container] = ours["spec"]["template"]["spec"]["containers"]
    assert container["env"].pop() == {"name": variables.ASKED_NODES, "value": requests_text(REQUESTS)}
    assert without_identity(ours) == without_identity(theirs)


def without_identity(job: dict[str, Any]) -> dict[str, Any]:
    """The spec without what Kubernetes makes of the Job's own name and uid, and without an empty environment."""
    spec = json.loads(json.dumps(job["spec"]))
    spec.pop("selector")
    own = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
    labels = spec["template"]["metadata"]["labels"]
    spec["template"]["metadata"]["labels"] = {key: value for key, value in labels.items() if key not in own}
    for container in spec["template"]["spec"]["containers"]:
        if not container.get("env"):
            container.pop("env", None)
    return spec
