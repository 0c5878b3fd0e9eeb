"""Which workloads are not ready yet, and why, in words a person can act on. Pure: from objects as the API server gave them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from standalone.render import key_of

WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet", "Job")
_IMAGE_FAULTS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_START_FAULTS = (*_IMAGE_FAULTS, "CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True)
class Waiting:
    """A workload that is not ready: how far it is, its pods' selector, and whether waiting is in vain."""

    kind: str
    name: str
    progress: str
    selector: str
    has_failed: bool = False


@dataclass(frozen=True)
class Trouble:
    """Why a pod is not ready. `logs_of` names a container whose last lines say more."""

    pod: str
    reason: str
    logs_of: str | None = None
    is_hopeless: bool = False


def waiting(workloads: Iterable[Mapping[str, Any]]) -> list[Waiting]:
    """Those that are not ready, in the words of their kind. An OnDelete set counts pods of any template.

    Source: kubectl's rollout status and the StatefulSet and Deployment status fields.
    """
    found: list[Waiting] = []
    for one in workloads:
        key, spec, status = key_of(one), one.get("spec", {}), one.get("status", {})
        if progress := _progress(key.kind, spec, status, one["metadata"].get("generation", 1)):
            labels = spec.get("selector", {}).get("matchLabels", {})
            selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            found.append(Waiting(key.kind, key.name, progress, selector, has_failed(one)))
    return found


def has_failed(workload: Mapping[str, Any]) -> bool:
    """True for a Job that has given up."""
    conditions: list[dict[str, str]] = workload.get("status", {}).get("conditions") or []
    return workload["kind"] == "Job" and any(one["type"] == "Failed" and one["status"] == "True" for one in conditions)


def _progress(kind: str, spec: Mapping[str, Any], status: Mapping[str, Any], generation: int) -> str | None:
    if kind == "Job":
        failed = next((one for one in status.get("conditions", []) if one["type"] == "Failed" and one["status"] == "True"), None)
        if failed:
            return f"failed: {failed.get('message') or failed.get('reason')}"
        return None if status.get("completionTime") else f"{status.get('succeeded', 0)} of {spec.get('completions', 1)} done"
    if status.get("observedGeneration", 0) < generation:
        return "not seen by its controller yet"
    if kind == "DaemonSet":
        wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
        updated = status.get("updatedNumberScheduled", 0)
    else:
        wanted, ready, updated = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    rolls = spec.get("updateStrategy", {}).get("type") != "OnDelete"
    if rolls and updated < wanted:
        return f"{updated} of {wanted} pods have the new template"
    if ready < wanted:
        return f"{ready} of {wanted} pods ready"
    if kind == "Deployment" and status.get("replicas", 0) > wanted:
        return f"{status['replicas'] - wanted} old pods still ending"
    return None


def troubles(pods: Iterable[Mapping[str, Any]]) -> list[Trouble]:
    """One line for each pod that is not ready and says why; hopeless ones first."""
    found = [trouble for pod in pods if (trouble := _trouble(pod))]
    return sorted(found, key=lambda one: (not one.is_hopeless, one.pod))


def _trouble(pod: Mapping[str, Any]) -> Trouble | None:
    name, spec, status = pod["metadata"]["name"], pod.get("spec", {}), pod.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    if conditions.get("Ready", {}).get("status") == "True" or pod["metadata"].get("deletionTimestamp"):
        return None
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return Trouble(name, _unschedulable(spec, str(scheduled.get("message", ""))))
    if status.get("phase") == "Succeeded":
        return None
    containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    for one in containers:
        ended = one.get("state", {}).get("terminated", {})
        if ended.get("exitCode") and status.get("phase") == "Failed":
            said = str(ended.get("message") or "").strip()
            return Trouble(name, f"container {one['name']} ended with {ended['exitCode']}{': ' + said if said else ''}")
        last = one.get("lastState", {}).get("terminated") or ended
        if one.get("restartCount") and last.get("exitCode") and not one.get("ready"):
            why = f"exit code {last['exitCode']}{', ' + last['reason'] if last.get('reason') not in (None, 'Error') else ''}"
            return Trouble(name, f"container {one['name']} keeps ending ({why}, {one['restartCount']} restarts)", one["name"])
        halted = one.get("state", {}).get("waiting", {})
        reason, message = str(halted.get("reason", "")), str(halted.get("message", ""))
        if reason in _IMAGE_FAULTS:
            return _image_trouble(name, str(one.get("image", "")), reason, message)
        if reason in _START_FAULTS:
            return Trouble(name, f"container {one['name']} cannot start: {reason}: {message}")
    not_ready = [one["name"] for one in status.get("containerStatuses", []) if not one.get("ready")]
    phase = "starting" if status.get("phase") == "Pending" else "not ready"
    return Trouble(name, f"{phase}: {', '.join(not_ready) or status.get('phase', 'no status')}", None)


def _unschedulable(spec: Mapping[str, Any], message: str) -> str:
    pool = ", ".join(f"{key}={value}" for key, value in sorted(spec.get("nodeSelector", {}).items()))
    asked: dict[str, str] = {}
    for container in spec.get("containers", []):
        asked |= {key: str(value) for key, value in container.get("resources", {}).get("requests", {}).items()}
    wants = ", ".join(f"{key} {value}" for key, value in sorted(asked.items()))
    where = f" with {pool}" if pool else ""
    short = message.partition(" preemption:")[0].strip()
    return f"no node{where} can take it (it asks for {wants or 'nothing'}): {short} Make room, add machines to the pool, or ask for less."


def _image_trouble(name: str, image: str, reason: str, message: str) -> Trouble:
    if image.startswith("localhost/"):
        remedy = (
            "the node does not have it: `python -m images build`, then `python -m local load-image` with the archive (`make up` does both)"
        )
        return Trouble(name, f"image {image} is missing ({reason}); {remedy}.", is_hopeless=True)
    return Trouble(name, f"image {image} cannot be pulled ({reason}): {message or 'check the name, the registry and images.pullSecrets'}")


def stuck(sets: Iterable[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pods of an older template that never started a container, and so hold up their StatefulSet's new one for ever.

    They cannot run a job: no main container has a running or an ended state. Source: Kubernetes' StatefulSet page, "Forced rollback".
    """
    newest = {
        one["metadata"]["name"]: one["status"]["updateRevision"] for one in sets if one["kind"] == "StatefulSet" and _is_observed(one)
    }
    found: list[str] = []
    for pod in pods:
        about = pod["metadata"]
        owner = next((one["name"] for one in about.get("ownerReferences", []) if one["kind"] == "StatefulSet"), None)
        revision = about.get("labels", {}).get("controller-revision-hash")
        if owner in newest and revision != newest[owner] and not about.get("deletionTimestamp") and _never_started(pod):
            found.append(about["name"])
    return sorted(found)


def _never_started(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return False
    main = status.get("containerStatuses", [])
    if any(one.get("restartCount") or set(one.get("state", {"waiting": {}})) != {"waiting"} or one.get("lastState") for one in main):
        return False
    held = [one.get("state", {}).get("waiting", {}).get("reason") for one in [*status.get("initContainerStatuses", []), *main]]
    unscheduled = any(one["type"] == "PodScheduled" and one["status"] == "False" for one in status.get("conditions", []))
    return unscheduled or any(reason in _START_FAULTS for reason in held)


def _is_observed(workload: Mapping[str, Any]) -> bool:
    """True when its controller has seen the present spec; before that, the status speaks of another one, or of none."""
    status = workload.get("status", {})
    return "updateRevision" in status and status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 1)
