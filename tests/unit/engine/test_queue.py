"""The jobs of a live cluster, asked for through the API server: what is asked, and that every failure makes them unknown, with a reason."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from engine import api, queue
from engine.kubeconfig import Where
from tests.support.engine.canned import CannedServer

KEY = b"0123456789abcdef0123456789abcdef"
SERVICES = "/api/v1/namespaces/slurm/services"
SECRET = "/api/v1/namespaces/slurm/secrets/dev-jwt"
QUEUE = "/api/v1/namespaces/slurm/services/dev-slurmrestd:jobs/proxy/queue/"
SERVICE = {"metadata": {"name": "dev-slurmrestd", "namespace": "slurm", "labels": {"slipway.dev/cluster": "dev"}}}
JOB = {
    "JobArrayID": "7",
    "State": "RUNNING",
    "NodeList": "gpu-0",
    "EndTime": "1800000000",
    "TimeLimit": "5",
    "UserName": "alice",
    "Account": "physics",
    "Partition": "main",
    "ReqNodes": "",
    "Feature": "(null)",
    "tres-alloc": "cpu=1,node=1",
}


def served(canned: CannedServer, tmp_path: Path) -> api.Api:
    """A cluster with one Slurm cluster, of one job."""
    canned.serve({"v1": ["Service", "Secret"]})
    canned.answers |= {
        SERVICES: (200, {"apiVersion": "v1", "items": [SERVICE]}),
        SECRET: (200, {"data": {"jwt_hs256.key": base64.b64encode(KEY).decode()}}),
        QUEUE: (200, {"jobs": [JOB], "errors": []}),
    }
    return api.connect(Where(str(canned.kubeconfig(tmp_path)), None))


def test_jobs_are_requested_as_slurm_with_a_token_of_the_clusters_key(canned: CannedServer, tmp_path: Path) -> None:
    found = queue.read(served(canned, tmp_path), "slurm")
    assert (found.unknown, [(job.number, job.user, job.nodes) for job in found.jobs]) == ("", [("7", "alice", frozenset({"gpu-0"}))])
    [headers] = [headers for _, path, headers, _ in canned.requests if path == QUEUE]
    claims = headers["x-slurm-user-token"].split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sun"] == "slurm"


STATUS: dict[str, Any] = {"kind": "Status", "message": "it is so"}
FAILURES: dict[str, tuple[dict[str, tuple[int, Any]], str]] = {
    "no Slurm cluster": ({SERVICES: (200, {"apiVersion": "v1", "items": []})}, "namespace slurm has no Service of slurmrestd"),
    "two Slurm clusters": ({SERVICES: (200, {"apiVersion": "v1", "items": [SERVICE, SERVICE]})}, "one cluster is expected there"),
    "no right to the proxy": ({QUEUE: (403, STATUS)}, "it is so (to read jobs, this user needs `get` on services/proxy"),
    "no right to the key": ({SECRET: (403, STATUS)}, "needs `get` on services/proxy and on the cluster's JWT Secret"),
    "no key": ({SECRET: (200, {"data": {}})}, "Secret dev-jwt has no jwt_hs256.key"),
    "an older slurmrestd pod": ({QUEUE: (404, STATUS)}, "an older slurmrestd pod does not list it"),
    "no pod": ({QUEUE: (503, STATUS)}, "it is so (slurmctld or slurmrestd is not ready)"),
    "slurmctld is silent": ({QUEUE: (504, STATUS)}, "slurmctld or slurmrestd is not ready"),
    "no JSON": ({QUEUE: (200, "squeue: error")}, "the answer cannot be read"),
    "no list": ({QUEUE: (200, {"jobs": None})}, "the answer cannot be read: no list of jobs"),
}


@pytest.mark.parametrize(("answers", "words"), FAILURES.values(), ids=FAILURES)
def test_failure_makes_jobs_unknown_and_says_why(
    answers: dict[str, tuple[int, Any]], words: str, canned: CannedServer, tmp_path: Path
) -> None:
    cluster = served(canned, tmp_path)
    canned.answers |= answers
    found = queue.read(cluster, "slurm")
    assert words in found.unknown
    assert found.jobs == ()


def test_cluster_that_stops_answering_makes_jobs_unknown(tmp_path: Path, canned: CannedServer) -> None:
    cluster = served(canned, tmp_path)
    cluster.kinds()
    cluster.client = api.connect(Where(str(CannedServer(9).kubeconfig(tmp_path)), None)).client  # nothing listens there
    assert "the cluster does not answer any more" in queue.read(cluster, "slurm").unknown
