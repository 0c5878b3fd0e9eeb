"""The kind SlurmNode as a real API server serves it: what the controller writes is taken as it is, kept by name, and shown in columns."""

import json
import re
from typing import Any

import pytest

from controllers.nodeset.plans.slurm_nodes import describe
from controllers.nodeset.pods import build_slurm_node
from controllers.nodeset.structs import SlurmNodeStatus
from slurm.causes import Cause, in_order
from tests.support.apiserver.server import ApiServer
from tests.support.controllers.nodeset.examples import look, node, nodeset, pod

APPLY = {"fieldManager": "slipway", "force": "true", "fieldValidation": "Strict"}
CORDON = Cause("cordon", "maintenance", "Kubernetes", "machine-7 is cordoned", "administrator of Kubernetes", "kubectl uncordon machine-7")
DISK = Cause("check/disk", "hardware", "health check disk", "/scratch is full", "health check disk", "the check looks again")


def written(*causes: Cause, now: float = 1_700_000_000) -> dict[str, Any]:
    """The object of gpu-0 as the controller applies it."""
    observed = look((pod(machine="machine-7"), node("IDLE CLOUD DRAIN")), now=now)
    made = build_slurm_node(nodeset(), 0, describe(nodeset(), observed, 0, in_order(causes), SlurmNodeStatus()))
    return json.loads(json.dumps(made))


def apply(server: ApiServer, namespace: str, manifest: dict[str, Any], **asked: str) -> tuple[int, dict[str, Any]]:
    path = f"/apis/slipway.dev/v1alpha1/namespaces/{namespace}/slurmnodes/{manifest['metadata']['name']}"
    body = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    headers = {"Content-Type": "application/apply-patch+yaml"}
    with server.client() as client:
        answer = client.patch(path, params={**APPLY, **asked}, headers=headers, content=json.dumps(body))
    return answer.status_code, answer.json()


def test_object_is_stored_as_written_and_a_lifted_cause_is_removed(server: ApiServer) -> None:
    server.make_namespace("sn-apply")
    code, made = apply(server, "sn-apply", written(CORDON, DISK))
    assert (code, made["status"]) == (201, written(CORDON, DISK)["status"])
    server.run_kubectl("-n", "sn-apply", "annotate", "slurmnode", "gpu-0", "ticket=17")
    code, left = apply(server, "sn-apply", written(CORDON))
    assert (code, left["status"]) == (200, written(CORDON)["status"])
    assert left["metadata"]["annotations"] == {"ticket": "17"}
    again = apply(server, "sn-apply", written(CORDON))[1]
    assert again["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"], "what changes nothing is no change"


def test_columns_show_state_causes_age_and_machine(server: ApiServer) -> None:
    server.make_namespace("sn-columns")
    apply(server, "sn-columns", written(CORDON, DISK))
    head, row = server.run_kubectl("-n", "sn-columns", "get", "sn").splitlines()
    assert head.split() == ["NAME", "STATE", "CAUSES", "SINCE", "MACHINE"]
    cells = re.split(r" {2,}", row)
    assert [*cells[:3], cells[4]] == ["gpu-0", "Drained", "check/disk, cordon", "machine-7"]
    assert re.fullmatch(r"\d+[dy]\w*", cells[3])
    said = server.run_kubectl("-n", "sn-columns", "describe", "slurmnode", "gpu-0")
    assert "machine-7 is cordoned" in said
    assert "kubectl uncordon machine-7" in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"state": "Tired"}, "supported values", id="state"),
        pytest.param({"since": "lately"}, "date-time", id="time"),
        pytest.param({"causes": [{"name": "a", "kind": "odd"}]}, "supported values", id="kind"),
        pytest.param({"causes": [{"name": "a", "wish": "odd"}]}, "supported values", id="wish"),
        pytest.param({"causes": [{"kind": "node"}]}, "name", id="cause-without-a-name"),
        pytest.param({"words": "x"}, "words", id="unknown-field"),
    ],
)
def test_what_is_no_report_is_refused(server: ApiServer, change: dict[str, Any], reason: str) -> None:
    manifest = written()
    code, said = apply(server, "default", {**manifest, "status": {**manifest["status"], **change}}, dryRun="All")
    assert code >= 400, said
    assert reason in said["message"]
