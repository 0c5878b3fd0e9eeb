"""Reports the progress of the stack's files of Slurm: as a condition of slurmctld's pod, and as events.

There is an event when the files are live, refused, waiting or late.

Source: slurmctld's sidecar (programs/config_sync/report.py). The annotation FILES_HASH, written with the condition, names its files.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from controllers.files import metrics
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError, Conflict
from controllers.runtime.informer import Informer
from controllers.runtime.structs import EVENTS, ConfigMap, ObjectMeta, Resource
from controllers.runtime.writer import Writer
from controllers.slurm.connections import Broken, Connections
from names import annotations, conditions, ports, writers
from slurm.files import content_hash
from slurm.hostlists import HostlistError, expand

LIVE, WAITING, REFUSED, BEHIND, DELIVERING = "Live", "Waiting", "Refused", "SlurmdsBehind", "Delivering"
_ANSWER_S = 5.0
_LONGEST = 900
"""Characters of a message: an event's note ends at 1,024."""
_SOON_S, _UNSETTLED_S, _SETTLED_S = 0.5, 3.0, 30.0
_FRESH_S = 15.0

log = structlog.get_logger()


class PodCondition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition, with the time of its status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The address at which the sidecar answers, and the conditions that the pod has."""

    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[PodCondition, ...] = ()


class DaemonPod(msgspec.Struct, frozen=True, rename="camel"):
    """A pod of slurmctld or slurmdbd."""

    metadata: ObjectMeta
    status: PodStatus = PodStatus()


DAEMON_PODS = Resource("v1", "pods", "Pod", DaemonPod)


class Report(msgspec.Struct, frozen=True):
    """What the sidecar says."""

    files: str
    state: str
    message: str
    held: str = ""
    """Nodes that keep their size until no job can be on them, as a hostlist."""
    keys: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """Since when slurmctld has its keys, in seconds since 1970."""


class Verdict(msgspec.Struct, frozen=True):
    """How far files are."""

    files: str
    """The hash of their content."""
    reason: str
    message: str

    @property
    def status(self) -> str:
        """Of the condition."""
        return "True" if self.reason == LIVE else "Unknown" if self.reason == DELIVERING else "False"


_STATES = {
    "live": (LIVE, ""),
    "spreading": (DELIVERING, ""),
    "waiting": (WAITING, ". They are taken over by themselves then; `scancel` ends jobs that are in the way"),
    "refused": (REFUSED, ". Mend the stack file and deploy it again"),
    "slurmds-behind": (BEHIND, ""),
}
"""By the sidecar's word: the reason, and the remedy that its message lacks."""


def hash_files(maps: Iterable[ConfigMap]) -> str:
    """The hash of the files as slurmctld's pod gets them; empty without files."""
    data = {name: text.encode() for config_map in maps for name, text in config_map.data.items()}
    return content_hash(data) if data else ""


def judge(files: str, report: Report | None, fault: str = "") -> Verdict:
    """How far the files of this content are, by the sidecar's report, or by the fault that kept it from reporting."""
    if report is None:
        return Verdict(files, DELIVERING, f"the container reconfigure of slurmctld's pod does not say how far the files are: {fault}")
    if report.files != files:
        return Verdict(files, DELIVERING, "the kubelet has not brought these files to slurmctld's pod yet")
    reason, remedy = _STATES.get(report.state, (DELIVERING, ""))
    return Verdict(files, reason, f"{report.message[: _LONGEST - len(remedy)]}{remedy}")


def find_verdict(pod: DaemonPod) -> tuple[Verdict | None, str]:
    """The pod's last verdict, and since when it has its status."""
    for condition in pod.status.conditions:
        if condition.type == conditions.FILES_LIVE:
            files = pod.metadata.annotations.get(annotations.FILES_HASH, "")
            return Verdict(files, condition.reason, condition.message), condition.last_transition_time or ""
    return None, ""


def build_status(pod: DaemonPod, verdict: Verdict, now: str) -> dict[str, Any]:
    """The condition and the annotation, to be applied to the pod's status: Kubernetes writes both at once."""
    before, since = find_verdict(pod)
    at = since if since and before is not None and before.status == verdict.status else now
    condition = {
        "type": conditions.FILES_LIVE,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "lastTransitionTime": at,
    }
    about = {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "annotations": {annotations.FILES_HASH: verdict.files}}
    return {"metadata": about, "status": {"conditions": [condition]}}


def build_event(pod: DaemonPod, verdict: Verdict, now: str, instance: str) -> dict[str, Any] | None:
    """The event of a new verdict. None if it was reported before, or is for the moment only. Equal events have equal names."""
    before, _ = find_verdict(pod)
    if verdict.reason == DELIVERING or (before is not None and (before.files, before.reason) == (verdict.files, verdict.reason)):
        return None
    meta = pod.metadata
    digest = hashlib.sha256(f"{meta.uid} {verdict.files} {verdict.reason}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{meta.name}.{digest}", "namespace": meta.namespace},
        "eventTime": f"{now.removesuffix('Z')}.000000Z",
        "reportingController": writers.FILES_CONTROLLER_REPORTS,
        "reportingInstance": instance,
        "action": "TakeFiles",
        "reason": f"Files{verdict.reason}",
        "note": verdict.message,
        "type": "Warning" if verdict.reason in (REFUSED, BEHIND) else "Normal",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
    }


async def ask(address: str) -> Report:
    """The sidecar's report. Raises Broken."""
    host = f"[{address}]" if ":" in address else address
    connections = Connections(f"http://{host}:{ports.CONFIG_SYNC}")
    try:
        async with asyncio.timeout(_ANSWER_S):
            answer = await connections.request("GET", "/files", {})
        if answer.status != 200:
            raise Broken(f"it answers with {answer.status}")
        return msgspec.json.decode(answer.body, type=Report)
    except TimeoutError:
        raise Broken(f"no answer within {_ANSWER_S:.0f} s") from None
    except msgspec.DecodeError as error:
        raise Broken(f"its answer makes no sense: {error}") from None
    finally:
        connections.close()


class FileProgress:
    """Follows two informers: of the ConfigMaps with Slurm's files, and of slurmctld's pods."""

    def __init__(
        self,
        files: Informer[ConfigMap],
        pods: Informer[DaemonPod],
        writer: Writer,
        clock: Clock,
        instance: str,
        ask: Callable[[str], Awaitable[Report]] = ask,
        held_changed: Callable[[frozenset[str]], None] = lambda _: None,
    ) -> None:
        """`held_changed` gets the nodes that keep their size from now on, and those that do so no more."""
        self._files, self._pods, self._writer, self._clock, self._instance, self._ask = files, pods, writer, clock, instance, ask
        self._hash, self._changed_at = "", 0.0
        self.held: frozenset[str] = frozenset()
        """Nodes that keep their size until no job can be on them, by the sidecar's last report."""
        self._held_changed = held_changed
        self._news = asyncio.Event()
        files.on_change(lambda _old, _new: self._news.set())
        pods.on_change(self._pod_changed)

    def _pod_changed(self, old: DaemonPod | None, new: DaemonPod | None) -> None:
        if old is None or new is None or old.status.pod_ip != new.status.pod_ip:
            self._news.set()

    async def run(self) -> None:
        """Looks at each change, and every few seconds until the files are settled, for ever."""
        await self._files.synced.wait()
        await self._pods.synced.wait()
        while True:
            self._news.clear()
            try:
                wait_s = await self.look()
            except ApiError as error:
                log.warning("how far Slurm's files are could not be written", error=str(error))
                wait_s = _UNSETTLED_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait_s)

    async def look(self) -> float:
        """Asks the sidecar, and writes what is new. Returns the seconds until the next look. Raises ApiError."""
        files = hash_files(self._files.store.values())
        if files != self._hash:
            self._hash, self._changed_at = files, self._clock.now()
        if not files:
            return _SETTLED_S
        is_settled = True
        for pod in list(self._pods.store.values()):
            if pod.metadata.deletion_timestamp is None and pod.status.pod_ip:
                is_settled &= await self._look_at(pod, files)
        if is_settled:
            return _SETTLED_S
        return _SOON_S if self._clock.now() - self._changed_at < _FRESH_S else _UNSETTLED_S

    async def _look_at(self, pod: DaemonPod, files: str) -> bool:
        """True if the files are live, and no node keeps its size against them."""
        try:
            report = await self._ask(pod.status.pod_ip)
            verdict = judge(files, report)
            for key, since in report.keys.items():
                metrics.KEYS.labels(key).set(since)
            if report.files:  # a sidecar that has just started knows of none
                self._note_held(frozenset(expand(report.held)))
        except (Broken, HostlistError) as error:
            verdict = judge(files, None, str(error))
        metrics.REFUSED.set(verdict.reason in (REFUSED, BEHIND))
        before, _ = find_verdict(pod)
        if verdict != before:
            now = datetime.fromtimestamp(self._clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            if event := build_event(pod, verdict, now, self._instance):
                with contextlib.suppress(Conflict):
                    await self._writer.create(EVENTS, event)
            await self._writer.apply_status(DAEMON_PODS, build_status(pod, verdict, now))
            log.info("Slurm's files", pod=pod.metadata.name, files=files, reason=verdict.reason, words=verdict.message)
        return verdict.reason == LIVE and not self.held

    def _note_held(self, held: frozenset[str]) -> None:
        changed, self.held = held ^ self.held, held
        if changed:
            self._held_changed(changed)
