"""Which workloads are not ready, and why, in words that a user can act on. Pure: reads objects from the API server."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jsonpath

from engine.faults import SlipwayError
from engine.render import Key, key_of
from slurm.logs import readable

WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet", "Job")
_IMAGE_FAULTS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_UNSEEN = "not seen by its controller yet"
_START_FAULTS = (*_IMAGE_FAULTS, "CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True)
class Waiting:
    """A workload that is not ready: its progress, the selector of its pods, and whether it has failed for good."""

    kind: str
    name: str
    progress: str
    selector: str
    has_failed: bool = False


@dataclass(frozen=True)
class Trouble:
    """Why a pod is not ready. `logs_of` names a container whose last log lines say more."""

    pod: str
    reason: str
    logs_of: str | None = None
    is_hopeless: bool = False


_DOTTED = re.compile(r"\.((?:[\w/-]|\\\.)*\\\.(?:[\w/-]|\\\.)*)")


@dataclass(frozen=True)
class Expectation:
    """One expression of `pulumi.com/waitFor`: a condition and its value, or a path and its value (None means any)."""

    condition: str = ""
    path: str = ""
    value: str | None = None

    @property
    def query(self) -> jsonpath.JSONPath | jsonpath.CompoundJSONPath:
        """The path by RFC 9535. Kubernetes puts it into braces, may omit the root, and escapes dots in names."""
        inner = self.path.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
        rooted = f"${inner}" if inner.startswith((".", "[")) else f"$.{inner}"
        return jsonpath.compile(_DOTTED.sub(lambda name: f"['{name[1]}']".replace("\\.", "."), rooted))


def expectation(expression: str) -> Expectation:
    """Reads `condition=TYPE[=VALUE]` or `jsonpath={PATH}[=VALUE]`. Raises SlipwayError for anything else.

    Source: the provider accepts the syntax of `kubectl wait --for`; the default value of a condition is True.
    """
    how, _, expected_text = expression.partition("=")
    if how == "condition" and expected_text:
        name, _, value = expected_text.partition("=")
        return Expectation(condition=name, value=value or "True")
    if how == "jsonpath" and expected_text:
        path, closed, value = expected_text.partition("}=")
        expected = Expectation(path=path + ("}" if closed else ""), value=value if closed else None)
        try:
            expected.query  # noqa: B018 (for its error)
        except jsonpath.JSONPathError as error:
            raise SlipwayError(f"pulumi.com/waitFor: jsonpath={path}: {error}; only the Pulumi CLI may support it.") from error
        return expected
    raise SlipwayError(f'pulumi.com/waitFor: "{expression}" is neither condition=... nor jsonpath=...')


_PROBE_FAILED = "Liveness probe failed: "
_NEWS_S = 600


def waiting(workloads: Iterable[Mapping[str, Any]], expected: Mapping[Key, Sequence[Expectation]] | None = None) -> list[Waiting]:
    """The workloads that are not ready, by the status of their kind or by what the stack expects. For an OnDelete set, pods of any template
    count.

    Source: kubectl's rollout status and the StatefulSet and Deployment status fields.
    """
    late_workloads: list[Waiting] = []
    for workload in workloads:
        key, spec, status = key_of(workload), workload.get("spec", {}), workload.get("status", {})
        if expectations := (expected or {}).get(key):
            progress = next((reason for item in expectations if (reason := _unmet(item, workload))), None)
            progress = _summary(status) or progress if progress and progress != _UNSEEN else progress
        else:
            progress = _progress(key.kind, spec, status, workload["metadata"].get("generation", 1))
        if progress:
            labels = spec.get("selector", {}).get("matchLabels", {})
            selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            # A scalable object has the selector of its pods in its status.
            late_workloads.append(Waiting(key.kind, key.name, progress, selector or str(status.get("selector", "")), has_failed(workload)))
    return late_workloads


def _unmet(expected: Expectation, live: Mapping[str, Any]) -> str | None:
    """Why the expectation is not met; None if it is."""
    status: Mapping[str, Any] = live.get("status", {})
    if expected.path:
        values = [value for value in expected.query.findall(live) if value is not None]
        values = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
        if expected.value is None:
            return None if values else f"{expected.path} is not there yet"
        return None if values == [expected.value] else f"{expected.path} is {', '.join(values) or 'not there'}, not {expected.value}"
    condition = _condition(status, expected.condition)
    generation = live["metadata"].get("generation", 0)
    if not condition or condition.get("observedGeneration", status.get("observedGeneration", generation)) < generation:
        return _UNSEEN
    if condition["status"].lower() == str(expected.value).lower():
        return None
    why = ": ".join(text for text in (condition.get("reason"), condition.get("message")) if text)
    return f"{condition['type']} is {condition['status']}{f' ({why})' if why else ''}"


def _summary(status: Mapping[str, Any]) -> str:
    """`Progressing: 1 of 2 nodes are registered.`, if the object's status has a phase and a reason."""
    phase, why = status.get("phase"), status.get("why")
    return f"{phase}: {why}" if phase and why else ""


def leaving(objects: Iterable[Mapping[str, Any]]) -> dict[Key, str]:
    """What each object that is being deleted waits for, in words."""
    reasons: dict[Key, str] = {}
    for live in objects:
        metadata = live["metadata"]
        finalizers: list[str] = metadata.get("finalizers") or []
        if "foregroundDeletion" in finalizers:
            reason = "waits until what it owns, such as pods, is gone"
        elif finalizers:
            reason = f"waits for its finalizer{'s' if len(finalizers) > 1 else ''} {', '.join(finalizers)}"
        else:
            reason = "is ending"
        summary = _summary(live.get("status", {}))
        reasons[key_of(live)] = f"{reason} ({summary})" if summary else reason
    return reasons


def has_failed(workload: Mapping[str, Any]) -> bool:
    """True for a Job that has failed for good."""
    return workload["kind"] == "Job" and has_condition(workload, "Failed")


def has_condition(live: Mapping[str, Any], name: str) -> bool:
    """True if the object's condition is True."""
    return _condition(live.get("status", {}), name).get("status") == "True"


def _condition(status: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The condition of that type (case-insensitive) in an object's status; empty if there is none."""
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    return next((condition for condition in conditions if condition["type"].lower() == name.lower()), dict[str, Any]())


def _progress(kind: str, spec: Mapping[str, Any], status: Mapping[str, Any], generation: int) -> str | None:
    if kind == "Job":
        failed = _condition(status, "Failed")
        if failed.get("status") == "True":
            return f"failed: {failed.get('message') or failed.get('reason')}"
        return None if status.get("completionTime") else f"{status.get('succeeded', 0)} of {spec.get('completions', 1)} done"
    if status.get("observedGeneration", 0) < generation:
        return _UNSEEN
    if kind == "DaemonSet":
        wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
        updated = status.get("updatedNumberScheduled", 0)
    else:
        wanted, ready, updated = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    is_rolling = spec.get("updateStrategy", {}).get("type") != "OnDelete"
    if is_rolling and updated < wanted:
        return f"{updated} of {wanted} pods have the new template"
    if ready < wanted:
        return f"{ready} of {wanted} pods ready"
    if kind == "Deployment" and status.get("replicas", 0) > wanted:
        return f"{status['replicas'] - wanted} old pods still ending"
    return None


def troubles(pods: Iterable[Mapping[str, Any]]) -> list[Trouble]:
    """The trouble of each pod that is not ready; hopeless pods first."""
    pod_troubles = [trouble for pod in pods if (trouble := _trouble(pod))]
    return sorted(pod_troubles, key=lambda trouble: (not trouble.is_hopeless, trouble.pod))


def refusals(events: Iterable[Mapping[str, Any]], now: datetime) -> list[str]:
    """A line for each slurmctld that refuses its files, from the events of its sidecar's probe (after many, one event in about five
    minutes)."""
    lines_by_pod: dict[str, str] = {}
    for event in events:
        involved, message = event.get("involvedObject", {}), str(event.get("message", ""))
        last_seen = event.get("lastTimestamp") or event.get("eventTime")
        if involved.get("fieldPath") != "spec.containers{reconfigure}" or not message.startswith(_PROBE_FAILED) or not last_seen:
            continue
        age_s = (now - datetime.fromisoformat(last_seen)).total_seconds()
        if age_s <= _NEWS_S:
            pod, complaint = str(involved.get("name")), " ".join(message.removeprefix(_PROBE_FAILED).split())
            logs = f"kubectl -n {event['metadata'].get('namespace')} logs {pod} -c slurmctld"
            lines_by_pod[pod] = f"{pod}, {max(0, age_s):.0f} s ago: {complaint}. Find the line in its log: {logs}"
    return [lines_by_pod[name] for name in sorted(lines_by_pod)]


def _trouble(pod: Mapping[str, Any]) -> Trouble | None:
    name, spec, status = pod["metadata"]["name"], pod.get("spec", {}), pod.get("status", {})
    if _condition(status, "Ready").get("status") == "True" or pod["metadata"].get("deletionTimestamp"):
        return None
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return Trouble(name, _unschedulable(spec, str(scheduled.get("message", ""))))
    if status.get("phase") == "Succeeded":
        return None
    main, init = status.get("containerStatuses", []), status.get("initContainerStatuses", [])
    # In a failed pod, sidecars were ended by a signal, so the main containers show the reason.
    containers = [*main, *init] if status.get("phase") == "Failed" else [*init, *main]
    for container in containers:
        ended = container.get("state", {}).get("terminated", {})
        if ended.get("exitCode") and status.get("phase") == "Failed":
            last_message = "\n".join(readable(line) for line in str(ended.get("message") or "").strip().splitlines())
            last_words = f": {last_message}" if last_message else ""
            return Trouble(name, f"container {container['name']} ended with {ended['exitCode']}{last_words}")
        last_end = container.get("lastState", {}).get("terminated") or ended
        if container.get("restartCount") and last_end.get("exitCode") and not container.get("ready"):
            why = f"exit code {last_end['exitCode']}{', ' + last_end['reason'] if last_end.get('reason') not in (None, 'Error') else ''}"
            description = f"container {container['name']} keeps ending ({why}, {container['restartCount']} restarts)"
            return Trouble(name, description, container["name"])
        waiting_state = container.get("state", {}).get("waiting", {})
        reason, message = str(waiting_state.get("reason", "")), str(waiting_state.get("message", ""))
        if reason in _IMAGE_FAULTS:
            return _image_trouble(name, str(container.get("image", "")), reason, message)
        if reason in _START_FAULTS:
            return Trouble(name, f"container {container['name']} cannot start: {reason}: {message}")
    not_ready = [container["name"] for container in main if not container.get("ready")]
    phase = "starting" if status.get("phase") == "Pending" else "not ready"
    return Trouble(name, f"{phase}: {', '.join(not_ready) or status.get('phase', 'no status')}", None)


def _unschedulable(spec: Mapping[str, Any], message: str) -> str:
    pool = ", ".join(f"{key}={value}" for key, value in sorted(spec.get("nodeSelector", {}).items()))
    requests: dict[str, str] = {}
    for container in spec.get("containers", []):
        requests |= {key: str(value) for key, value in container.get("resources", {}).get("requests", {}).items()}
    wanted = ", ".join(f"{key} {value}" for key, value in sorted(requests.items()))
    where = f" with {pool}" if pool else ""
    cause = message.partition(" preemption:")[0].strip()
    return f"no node{where} can take it (it asks for {wanted or 'nothing'}): {cause} Make room, add machines to the pool, or ask for less."


def _image_trouble(name: str, image: str, reason: str, message: str) -> Trouble:
    if image.startswith("localhost/"):
        remedy = "`python -m images build`, then `python -m local load-image` with the archive (`make up` does both)"
        return Trouble(name, f"image {image} is missing ({reason}); the node does not have it: {remedy}.", is_hopeless=True)
    return Trouble(name, f"image {image} cannot be pulled ({reason}): {message or 'check the name, the registry and images.pullSecrets'}")


def stuck(sets: Iterable[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pods of an older template that never started a container, and so block their StatefulSet's new template for ever.

    They cannot run a job: no main container is running or has ended. Source: Kubernetes' StatefulSet page, "Forced rollback".
    """
    observed_sets = [workload for workload in sets if workload["kind"] == "StatefulSet" and _is_observed(workload)]
    newest_revisions = {workload["metadata"]["name"]: workload["status"]["updateRevision"] for workload in observed_sets}
    stuck_pods: list[str] = []
    for pod in pods:
        metadata = pod["metadata"]
        owner = next((owner["name"] for owner in metadata.get("ownerReferences", []) if owner["kind"] == "StatefulSet"), None)
        is_old = owner in newest_revisions and metadata.get("labels", {}).get("controller-revision-hash") != newest_revisions[owner]
        if is_old and not metadata.get("deletionTimestamp") and _never_started(pod):
            stuck_pods.append(metadata["name"])
    return sorted(stuck_pods)


def _never_started(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return False
    main, init = status.get("containerStatuses", []), status.get("initContainerStatuses", [])
    if any(map(_has_run, main)):
        return False
    waiting_reasons = [container.get("state", {}).get("waiting", {}).get("reason") for container in [*init, *main]]
    return _condition(status, "PodScheduled").get("status") == "False" or any(reason in _START_FAULTS for reason in waiting_reasons)


def _has_run(container: Mapping[str, Any]) -> bool:
    is_waiting = set(container.get("state", {"waiting": {}})) == {"waiting"}
    return not is_waiting or bool(container.get("restartCount") or container.get("lastState"))


def _is_observed(workload: Mapping[str, Any]) -> bool:
    """True if the controller has seen the current spec, so that the status describes it."""
    status = workload.get("status", {})
    return "updateRevision" in status and status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 1)
