"""Waits until slurmctld and its slurmds run with the files that `up` has changed.

The NodeSet controller writes a condition to slurmctld's pod, and the hash of the files it is about to an annotation
(controllers/files/progress.py).
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
"""Files that wait longer wait for jobs: drained nodes go sooner."""


@dataclass(frozen=True)
class Progress:
    """The progress of the files of a slurmctld."""

    reason: str = ""
    """Live, Waiting, Refused, SlurmdsBehind or Delivering; empty while there is no report on these files."""
    message: str = "the NodeSet controller has not reported on them yet"


def find_changed(pending: Iterable[ObjectChange]) -> list[Key]:
    """The ConfigMaps with slurmctld's files that `up` has created or changed."""
    config_maps = [change for change in pending if change.document and change.key.kind == "ConfigMap"]
    return [
        change.key for change in config_maps if change.document and _labels(change.document.manifest).get(labels.COMPONENT) == "slurmctld"
    ]


def read_progress(pods: Iterable[Mapping[str, Any]], files: str) -> Progress:
    """The progress of the files with this hash, from slurmctld's pod."""
    for pod in pods:
        metadata = pod["metadata"]
        if metadata.get("deletionTimestamp") or metadata.get("annotations", {}).get(annotations.FILES_HASH) != files:
            continue
        for condition in pod.get("status", {}).get("conditions", []):
            if condition["type"] == conditions.FILES_LIVE:
                return Progress(condition.get("reason", ""), condition.get("message", ""))
    return Progress()


def wait(home: Home, pending: Sequence[ObjectChange], screen: Screen, timeout_s: float) -> None:
    """Waits until the changed files are live. Files that wait for jobs, and slurmds that stay behind, only cause a warning.

    Raises SlipwayError if slurmctld refuses the files, and after `timeout_s`.
    """
    for key in find_changed(pending):
        with contextlib.suppress(RefusedError):  # this user may not read pods
            _wait_for(home, key, screen, timeout_s)


def _wait_for(home: Home, key: Key, screen: Screen, timeout_s: float) -> None:
    live = home.api.find(key)
    if live is None:
        return
    files = content_hash({name: text.encode() for name, text in live.get("data", {}).items()})
    pods = f"{labels.COMPONENT}=slurmctld,{labels.CLUSTER}={_labels(live).get(labels.CLUSTER, '')}"
    started = waits_since = time.monotonic()
    with screen.waiting("waiting until Slurm has its files") as line:
        while True:
            progress, now = read_progress(home.api.list(_POD, home.namespace, labelSelector=pods), files), time.monotonic()
            if progress.reason == "Live":
                screen.tick(f"Slurm's files are live: {progress.message}", started)
                return
            if progress.reason == "Refused":
                raise SlipwayError(f"All applied objects stay, but Slurm's files are not in use: {progress.message}")
            if progress.reason != "Waiting":
                waits_since = now
            if progress.reason == "SlurmdsBehind" or now - waits_since > _PATIENCE_S:
                screen.warn(f"Slurm's files are not in use everywhere yet: {progress.message}")
                return
            if now - started > timeout_s:
                raise SlipwayError(f"Slurm's files are not live after {timeout_s:.0f} s: {progress.message}")
            line.update(f"waiting until Slurm has its files: {progress.message}")
            time.sleep(_POLL_S)


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return manifest["metadata"].get("labels", {})
