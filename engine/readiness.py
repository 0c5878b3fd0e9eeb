"""Which workloads are not ready yet, and why, in words a person can act on. Pure: from objects as the API server gave them."""

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


_DOTTED = re.compile(r"\.((?:[\w/-]|\\\.)*\\\.(?:[\w/-]|\\\.)*)")


@dataclass(frozen=True)
class Expectation:
    """One expression of `pulumi.com/waitFor`: a condition and its value, or a path and its value (None: any)."""

    condition: str = ""
    path: str = ""
    value: str | None = None

    @property
    def query(self) -> jsonpath.JSONPath | jsonpath.CompoundJSONPath:
        """The path as RFC 9535 has it. Kubernetes' has braces around it, may leave the root out, and escapes dots in names."""
        inner = self.path.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
        rooted = f"${inner}" if inner.startswith((".", "[")) else f"$.{inner}"
        return jsonpath.compile(_DOTTED.sub(lambda name: f"['{name[1]}']".replace("\\.", "."), rooted))


def expectation(expression: str) -> Expectation:
    """Reads `condition=TYPE[=VALUE]` or `jsonpath={PATH}[=VALUE]`. Raises SlipwayError for anything else.

    Source: the provider takes what `kubectl wait --for` takes; a condition's value is True where it is left out.
    """
    how, _, said = expression.partition("=")
    if how == "condition" and said:
        name, _, value = said.partition("=")
        return Expectation(condition=name, value=value or "True")
    if how == "jsonpath" and said:
        path, closed, value = said.partition("}=")
        expected = Expectation(path=path + ("}" if closed else ""), value=value if closed else None)
        try:
            expected.query  # noqa: B018 (for its error)
        except jsonpath.JSONPathError as error:
            raise SlipwayError(f"pulumi.com/waitFor: jsonpath={path}: {error}; only the pulumi CLI may know how.") from error
        return expected
    raise SlipwayError(f'pulumi.com/waitFor: "{expression}" is neither condition=... nor jsonpath=...')


_PROBE_FAILED = "Liveness probe failed: "
_NEWS_S = 600


def waiting(workloads: Iterable[Mapping[str, Any]], expected: Mapping[Key, Sequence[Expectation]] | None = None) -> list[Waiting]:
    """Those that are not ready: in the words of their kind, or as the stack expects it. An OnDelete set counts pods of any template.

    Source: kubectl's rollout status and the StatefulSet and Deployment status fields.
    """
    found: list[Waiting] = []
    for workload in workloads:
        key, spec, status = key_of(workload), workload.get("spec", {}), workload.get("status", {})
        if expectations := (expected or {}).get(key):
            progress = next((said for each in expectations if (said := _unmet(each, workload))), None)
            progress = _summary(status) or progress if progress and progress != _UNSEEN else progress
        else:
            progress = _progress(key.kind, spec, status, workload["metadata"].get("generation", 1))
        if progress:
            labels = spec.get("selector", {}).get("matchLabels", {})
            selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            # An object that can be scaled says itself which pods are its own.
            found.append(Waiting(key.kind, key.name, progress, selector or str(status.get("selector", "")), has_failed(workload)))
    return found


def _unmet(expected: Expectation, live: Mapping[str, Any]) -> str | None:
    """What is not as expected yet; None when it is."""
    status: Mapping[str, Any] = live.get("status", {})
    if expected.path:
        values = [value for value in expected.query.findall(live) if value is not None]
        values = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
        if expected.value is None:
            return None if values else f"{expected.path} is not there yet"
        return None if values == [expected.value] else f"{expected.path} is {', '.join(values) or 'not there'}, not {expected.value}"
    found = _condition(status, expected.condition)
    generation = live["metadata"].get("generation", 0)
    if not found or found.get("observedGeneration", status.get("observedGeneration", generation)) < generation:
        return _UNSEEN
    if found["status"].lower() == str(expected.value).lower():
        return None
    why = ": ".join(said for said in (found.get("reason"), found.get("message")) if said)
    return f"{found['type']} is {found['status']}{f' ({why})' if why else ''}"


def _summary(status: Mapping[str, Any]) -> str:
    """`Progressing: 1 of 2 nodes are registered.` of an object whose status has a phase and says why."""
    phase, why = status.get("phase"), status.get("why")
    return f"{phase}: {why}" if phase and why else ""


def leaving(objects: Iterable[Mapping[str, Any]]) -> dict[Key, str]:
    """What holds each object that is being deleted, in words."""
    said: dict[Key, str] = {}
    for live in objects:
        about = live["metadata"]
        finalizers: list[str] = about.get("finalizers") or []
        if "foregroundDeletion" in finalizers:
            reason = "waits until what it owns, such as pods, is gone"
        elif finalizers:
            reason = f"waits for its finalizer{'s' if len(finalizers) > 1 else ''} {', '.join(finalizers)}"
        else:
            reason = "is ending"
        summary = _summary(live.get("status", {}))
        said[key_of(live)] = f"{reason} ({summary})" if summary else reason
    return said


def has_failed(workload: Mapping[str, Any]) -> bool:
    """True for a Job that has given up."""
    return workload["kind"] == "Job" and has_condition(workload, "Failed")


def has_condition(live: Mapping[str, Any], name: str) -> bool:
    """True for an object with this condition."""
    return _condition(live.get("status", {}), name).get("status") == "True"


def _condition(status: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The condition of that type in an object's status, whatever its capitals; empty where there is none."""
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
    rolls = spec.get("updateStrategy", {}).get("type") != "OnDelete"
    if rolls and updated < wanted:
        return f"{updated} of {wanted} pods have the new template"
    if ready < wanted:
        return f"{ready} of {wanted} pods ready"
    if kind == "Deployment" and status.get("replicas", 0) > wanted:
        return f"{status['replicas'] - wanted} old pods still ending"
    return None


def troubles(pods: Iterable[Mapping[str, Any]]) -> list[Trouble]:
    """One line for each pod that is not ready and says why; hopeless pods first."""
    found = [trouble for pod in pods if (trouble := _trouble(pod))]
    return sorted(found, key=lambda trouble: (not trouble.is_hopeless, trouble.pod))


def refusals(events: Iterable[Mapping[str, Any]], now: datetime) -> list[str]:
    """A line for each slurmctld that refuses the files it was given, by the events that the probe of its sidecar makes (about one event in
    five minutes, once there were many)."""
    found: dict[str, str] = {}
    for event in events:
        about, said = event.get("involvedObject", {}), str(event.get("message", ""))
        last = event.get("lastTimestamp") or event.get("eventTime")
        if about.get("fieldPath") != "spec.containers{reconfigure}" or not said.startswith(_PROBE_FAILED) or not last:
            continue
        age_s = (now - datetime.fromisoformat(last)).total_seconds()
        if age_s <= _NEWS_S:
            words = " ".join(said.removeprefix(_PROBE_FAILED).split())
            logs = f"kubectl -n {event['metadata'].get('namespace')} logs {about.get('name')} -c slurmctld"
            found[str(about.get("name"))] = f"{about.get('name')}, {max(0, age_s):.0f} s ago: {words}. Its own log has the line: {logs}"
    return [found[name] for name in sorted(found)]


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
    # In a failed pod a signal has ended the sidecars: the reason is elsewhere.
    containers = [*main, *init] if status.get("phase") == "Failed" else [*init, *main]
    for container in containers:
        ended = container.get("state", {}).get("terminated", {})
        if ended.get("exitCode") and status.get("phase") == "Failed":
            said = "\n".join(readable(line) for line in str(ended.get("message") or "").strip().splitlines())
            return Trouble(name, f"container {container['name']} ended with {ended['exitCode']}{': ' + said if said else ''}")
        last = container.get("lastState", {}).get("terminated") or ended
        if container.get("restartCount") and last.get("exitCode") and not container.get("ready"):
            why = f"exit code {last['exitCode']}{', ' + last['reason'] if last.get('reason') not in (None, 'Error') else ''}"
            often = f"container {container['name']} keeps ending ({why}, {container['restartCount']} restarts)"
            return Trouble(name, often, container["name"])
        halted = container.get("state", {}).get("waiting", {})
        reason, message = str(halted.get("reason", "")), str(halted.get("message", ""))
        if reason in _IMAGE_FAULTS:
            return _image_trouble(name, str(container.get("image", "")), reason, message)
        if reason in _START_FAULTS:
            return Trouble(name, f"container {container['name']} cannot start: {reason}: {message}")
    not_ready = [container["name"] for container in main if not container.get("ready")]
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
        remedy = "`python -m images build`, then `python -m local load-image` with the archive (`make up` does both)"
        return Trouble(name, f"image {image} is missing ({reason}); the node does not have it: {remedy}.", is_hopeless=True)
    return Trouble(name, f"image {image} cannot be pulled ({reason}): {message or 'check the name, the registry and images.pullSecrets'}")


def stuck(sets: Iterable[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pods of an older template that never started a container, and so hold up their StatefulSet's new one for ever.

    They cannot run a job: no main container has a running or an ended state. Source: Kubernetes' StatefulSet page, "Forced rollback".
    """
    observed = [workload for workload in sets if workload["kind"] == "StatefulSet" and _is_observed(workload)]
    newest = {workload["metadata"]["name"]: workload["status"]["updateRevision"] for workload in observed}
    found: list[str] = []
    for pod in pods:
        about = pod["metadata"]
        owners = [reference["name"] for reference in about.get("ownerReferences", []) if reference["kind"] == "StatefulSet"]
        owner = owners[0] if owners else None
        revision = about.get("labels", {}).get("controller-revision-hash")
        if owner in newest and revision != newest[owner] and not about.get("deletionTimestamp") and _never_started(pod):
            found.append(about["name"])
    return sorted(found)


def _never_started(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return False
    main, init = status.get("containerStatuses", []), status.get("initContainerStatuses", [])
    if any(map(_has_run, main)):
        return False
    held = [container.get("state", {}).get("waiting", {}).get("reason") for container in [*init, *main]]
    return _condition(status, "PodScheduled").get("status") == "False" or any(reason in _START_FAULTS for reason in held)


def _has_run(container: Mapping[str, Any]) -> bool:
    """True of a container that runs, or has ended."""
    is_waiting = set(container.get("state", {"waiting": {}})) == {"waiting"}
    return not is_waiting or bool(container.get("restartCount") or container.get("lastState"))


def _is_observed(workload: Mapping[str, Any]) -> bool:
    """True when its controller has seen the present spec; before that, the status speaks of another spec, or of none."""
    status = workload.get("status", {})
    return "updateRevision" in status and status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 1)
