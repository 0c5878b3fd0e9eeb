"""Health checks of the set in memory that the controller starts as Jobs, and what these find."""

from typing import Any

from controllers.nodeset.check_jobs import CRON_JOBS, JOBS
from names import variables
from slurm.causes import Kind
from slurm.check_results import Request, following, read_requests, read_results, with_result
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.fakes.kubernetes import FakeKubernetes

POLICY: dict[str, Any] = {"steps": ["RecreatePod"], "waitSeconds": 60, "verifiedBy": ["stream"]}
SPEC: dict[str, Any] = {"replicas": 4, "healthChecks": ["disk", "stream"], "checkJobs": ["disk", "stream"], "remedies": POLICY}
IN_SERVICE = {"IDLE", "CLOUD"}


def put_cron_job(server: FakeKubernetes, check: str) -> None:
    container = {"name": "check", "image": "slurm", "env": [{"name": "KEPT", "value": "1"}]}
    pod = {"containers": [container], "initContainers": [{"name": "munged"}], "restartPolicy": "Never"}
    job = {"metadata": {"labels": {"app": "slurm"}}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}
    server.put(CRON_JOBS, {"metadata": {"namespace": "slurm", "name": f"dev-check-{check}"}, "spec": {"jobTemplate": job}})


def jobs(cluster: Cluster) -> dict[str, dict[str, Request]]:
    """By check: the nodes that its Job is for."""
    found: dict[str, dict[str, Request]] = {}
    for key in cluster.server.keys(JOBS):
        [container] = cluster.server.get(JOBS, key)["spec"]["template"]["spec"]["containers"]
        asked = next(each["value"] for each in container["env"] if each["name"] == variables.ASKED_NODES)
        found[key[1].removeprefix("dev-check-").removesuffix("-asked")] = read_requests(asked) or {}
    return found


def answer(cluster: Cluster, kind: Kind = "node", **results: str) -> list[str]:
    """The Jobs run, and Kubernetes removes them: what each says of its nodes, `passed` if not given. Gives the checks that ran."""
    ran = sorted(jobs(cluster))
    for check, requests in jobs(cluster).items():
        for name, request in requests.items():
            before = (read_results(cluster.slurm.extras.get(name, "")) or {}).get(check)
            result = following(before, results.get(check, "passed"), "slow", at(cluster), kind, True, asked=request)
            cluster.slurm.extras[name] = with_result(cluster.slurm.extras.get(name, ""), check, result) or ""
        cluster.server.remove(JOBS, ("slurm", f"dev-check-{check}-asked"))
    return ran


def at(cluster: Cluster) -> str:
    return cluster.process.reconciler.world.now_text()


def state(cluster: Cluster) -> str:
    return next((each["state"] for each in cluster.status().get("repairs", [])), "")
