"""The Job that starts a health check: what `kubectl create job --from=cronjob/NAME` makes, for some nodes only. Pure."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

import msgspec

from controllers.nodeset.pods import Manifest, without_nulls
from controllers.nodeset.structs import TemplateMeta
from controllers.runtime.structs import ObjectMeta, PartialObject, Resource
from names import variables
from slurm.check_results import Request, requests_text

KEPT_S = 60
"""Seconds after which Kubernetes removes an ended Job with its log. Until then its name is taken: the check cannot start again."""
MOST_NODES = 200
"""Nodes of one Job: their requests are in one environment variable, which may have 128 KiB."""
_BEFORE_JOBS = MOST_NODES // 4
"""Of these, as many are reserved for nodes that wait for their checks before jobs. Otherwise repairs come first."""
_CONTAINER = "check"


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    pass


class JobTemplate(_Struct, frozen=True):
    """A Job of a CronJob; its spec is passed on as it is."""

    spec: dict[str, Any]
    metadata: TemplateMeta = TemplateMeta()


class CronJobSpec(_Struct, frozen=True):
    """What a CronJob makes."""

    job_template: JobTemplate


class CronJob(_Struct, frozen=True):
    """The CronJob of a health check."""

    metadata: ObjectMeta
    spec: CronJobSpec


CRON_JOBS = Resource("batch/v1", "cronjobs", "CronJob", CronJob)
JOBS = Resource("batch/v1", "jobs", "Job", PartialObject)


def cron_job_name(cluster: str, check: str) -> str:
    """As components/health_checks.py calls it."""
    return f"{cluster}-check-{check}"


def job_name(cluster: str, check: str) -> str:
    """Name of the Job that the controller makes from it."""
    return f"{cron_job_name(cluster, check)}-asked"


def choose(requests: Mapping[int, Request], now: float) -> dict[int, Request]:
    """The nodes of the next Job: all that wait, or a random choice of them, repairs first.

    The choice is random so that every node gets a turn, even beside nodes for which a check never answers. Its seed is `now`, in seconds:
    no earlier Job has to be remembered, and no interval between Jobs leaves out the same node every time.
    """

    def random_rank(ordinal: int) -> bytes:
        return blake2b(f"{now:.0f}/{ordinal}".encode(), digest_size=8).digest()

    drawn = sorted(requests) if len(requests) <= MOST_NODES else sorted(requests, key=random_rank)
    repairs = [ordinal for ordinal in drawn if requests[ordinal].step]
    before_jobs = [ordinal for ordinal in drawn if not requests[ordinal].step]
    repairs = repairs[: MOST_NODES - min(len(before_jobs), _BEFORE_JOBS)]
    return {ordinal: requests[ordinal] for ordinal in sorted([*repairs, *before_jobs[: MOST_NODES - len(repairs)]])}


def build_job(cron_job: CronJob, cluster: str, check: str, requests: Mapping[str, Request]) -> Manifest:
    """The Job, for the nodes of these names."""
    template, about = cron_job.spec.job_template, cron_job.metadata
    spec: Manifest = {"ttlSecondsAfterFinished": KEPT_S, **without_nulls(template.spec)}
    pod: Manifest = spec["template"]["spec"]
    asked_nodes = {"name": variables.ASKED_NODES, "value": requests_text(requests)}
    containers = cast(list[Manifest], pod["containers"])
    containers = [{**item, "env": [*item.get("env", []), asked_nodes]} if item["name"] == _CONTAINER else item for item in containers]
    # Without blockOwnerDeletion, which would take a right to the CronJob's finalizers.
    owner = {"apiVersion": CRON_JOBS.api_version, "kind": CRON_JOBS.kind, "name": about.name, "uid": about.uid, "controller": True}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": job_name(cluster, check),
            "namespace": about.namespace,
            "labels": template.metadata.labels,
            "annotations": {**template.metadata.annotations, "cronjob.kubernetes.io/instantiate": "manual"},
            "ownerReferences": [owner],
        },
        "spec": {**spec, "template": {**spec["template"], "spec": {**pod, "containers": containers}}},
    }
