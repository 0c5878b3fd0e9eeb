"""Workloads and CronJobs around the pod of a component, with the name `<cluster>-<component>`. Pure builders."""

from typing import Any

from components.labels import Manifest, component_metadata, labels, object_name, selector
from components.pods import PodDefaults, pod_template


def stateful_set(pods: PodDefaults, component: str, pod: Manifest, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A StatefulSet of one pod, with these annotations of the pod and more fields of the set's `spec`."""
    template = pod_template(pods, component, pod, annotations=annotations)
    return _workload(pods, component, "StatefulSet", template, {"serviceName": object_name(pods["cluster"], component), **spec})


def deployment(pods: PodDefaults, component: str, pod: Manifest, **spec: Any) -> Manifest:
    """A Deployment, of one pod unless `spec` has `replicas`, with more fields of its `spec`."""
    return _workload(pods, component, "Deployment", pod_template(pods, component, pod), spec)


def _workload(pods: PodDefaults, component: str, kind: str, template: Manifest, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": component_metadata(pods["cluster"], pods["namespace"], component),
        "spec": {"replicas": 1, "selector": {"matchLabels": selector(pods["cluster"], component)}, "template": template, **spec},
    }


def cron_job(
    pods: PodDefaults, component: str, pod: Manifest, schedule: str | None, limit_s: float, name: str = "", **spec: Any
) -> Manifest:
    """A CronJob whose runs never overlap, are not retried and end after `limit_s`. `name` differs from `component` if that has several."""
    job = {"backoffLimit": 0, "activeDeadlineSeconds": limit_s, "template": pod_template(pods, component, pod)}
    template = {"metadata": {"labels": labels(pods["cluster"], component)}, "spec": job}
    about = component_metadata(pods["cluster"], pods["namespace"], component)
    if name:
        about["name"] = object_name(pods["cluster"], name)
    full_spec = {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": about, "spec": full_spec}
