"""Waits until slurmctld and its slurmds run with the files that `up` has changed, by the condition that the NodeSet controller writes into
slurmctld's pod (controllers/files/progress.py): its annotation says which files the condition speaks of. What is read of pods is pure.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api import RefusedError
from engine.changes import ObjectChange
from engine.cluster import Home
from engine.faults import SlipwayError
from engine.render import Key, Sort
from engine.screen import Screen
from names import annotations, conditions, labels
from slurm.files import content_hash

_POD = Sort("", "Pod")
_POLL_S = 0.5
_PATIENCE_S = 20.0
"""Files that wait for so long wait for jobs: drained nodes go sooner."""


@dataclass(frozen=True)
class Progress:
    """How far the files of a slurmctld are."""

    reason: str = ""
    """Live, Waiting, Refused, SlurmdsBehind or Delivering; empty while nothing is said of these files."""
    message: str = "the NodeSet controller has not said yet how far they are"


def find_changed(pending: Iterable[ObjectChange]) -> list[Key]:
    """The ConfigMaps with slurmctld's files that `up` has made or changed."""
    mine = [change for change in pending if change.document and change.key.kind == "ConfigMap"]
    return [change.key for change in mine if change.document and _labels(change.document.manifest).get(labels.COMPONENT) == "slurmctld"]


def read_progress(pods: Iterable[Mapping[str, Any]], files: str) -> Progress:
    """What slurmctld's pod says of the files of this content."""
    for pod in pods:
        about = pod["metadata"]
        if about.get("deletionTimestamp") or about.get("annotations", {}).get(annotations.FILES_HASH) != files:
            continue
        for each in pod.get("status", {}).get("conditions", []):
            if each["type"] == conditions.FILES_LIVE:
                return Progress(each.get("reason", ""), each.get("message", ""))
    return Progress()


def wait(home: Home, pending: Sequence[ObjectChange], screen: Screen, timeout_s: float) -> None:
    """Until the changed files are live. Files that wait for jobs, and slurmds that stay behind, are told and not waited for.

    Raises SlipwayError for files that slurmctld refuses, and after `timeout_s`.
    """
    for key in find_changed(pending):
        with contextlib.suppress(RefusedError):  # a user who may not read pods is not told
            _wait_for(home, key, screen, timeout_s)


def _wait_for(home: Home, key: Key, screen: Screen, timeout_s: float) -> None:
    live = home.api.find(key)
    if live is None:
        return
    files = content_hash({name: text.encode() for name, text in live.get("data", {}).items()})
    pods = f"{labels.COMPONENT}=slurmctld,{labels.CLUSTER}={_labels(live).get(labels.CLUSTER, '')}"
    begin = waits_since = time.monotonic()
    with screen.waiting("waiting until Slurm has its files") as line:
        while True:
            found, now = read_progress(home.api.list(_POD, home.namespace, labelSelector=pods), files), time.monotonic()
            if found.reason == "Live":
                screen.tick(f"Slurm's files are live: {found.message}", begin)
                return
            if found.reason == "Refused":
                raise SlipwayError(f"What was applied stays, but Slurm's files are not in use: {found.message}")
            if found.reason != "Waiting":
                waits_since = now
            if found.reason == "SlurmdsBehind" or now - waits_since > _PATIENCE_S:
                screen.warn(f"Slurm's files are not in use everywhere yet: {found.message}")
                return
            if now - begin > timeout_s:
                raise SlipwayError(f"Slurm's files are not live after {timeout_s:.0f} s: {found.message}")
            line.update(f"waiting until Slurm has its files: {found.message}")
            time.sleep(_POLL_S)


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return manifest["metadata"].get("labels", {})
