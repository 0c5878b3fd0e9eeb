"""The Job with which the controller starts a health check: what `kubectl create job --from=cronjob/NAME` makes, for some nodes only. Pure.

A check has one such Job at a time, as they all have one name: the API server refuses a second one, whoever asks. Kubernetes removes it
`KEPT_S` after its end, and what the check found is in Slurm then.
"""

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
"""Seconds for which an ended Job keeps its log and its name. So long after it a check is started again where it gave no answer."""
MOST_NODES = 200
"""Nodes of one Job: their requests are in one environment variable, which may have 128 KiB."""
_ADMITTED = MOST_NODES // 4
"""Of these, so many are for nodes that wait for their first job, where that many wait: repairs have the rest, and what is left over."""
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
    """The nodes of the next Job: all that wait, or else some of them, repairs first. Each Job draws by lot, so nodes of which a check never
    has an answer keep no other from its turn. The lot is of `now`, in seconds: nothing has to be remembered of the Jobs before, and no
    pace of theirs leaves the same node out again and again."""

    def lot(ordinal: int) -> bytes:
        return blake2b(f"{now:.0f}/{ordinal}".encode(), digest_size=8).digest()

    drawn = sorted(requests) if len(requests) <= MOST_NODES else sorted(requests, key=lot)
    repairs = [ordinal for ordinal in drawn if requests[ordinal].step]
    admitted = [ordinal for ordinal in drawn if not requests[ordinal].step]
    repairs = repairs[: MOST_NODES - min(len(admitted), _ADMITTED)]
    return {ordinal: requests[ordinal] for ordinal in sorted([*repairs, *admitted[: MOST_NODES - len(repairs)]])}


def build_job(cron_job: CronJob, cluster: str, check: str, requests: Mapping[str, Request]) -> Manifest:
    """The Job, for the nodes of these names."""
    template, about = cron_job.spec.job_template, cron_job.metadata
    spec: Manifest = {"ttlSecondsAfterFinished": KEPT_S, **without_nulls(template.spec)}
    pod: Manifest = spec["template"]["spec"]
    asked = {"name": variables.ASKED_NODES, "value": requests_text(requests)}
    containers = cast(list[Manifest], pod["containers"])
    containers = [{**each, "env": [*each.get("env", []), asked]} if each["name"] == _CONTAINER else each for each in containers]
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
