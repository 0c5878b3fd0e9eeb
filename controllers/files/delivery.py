"""Tells the kubelets of slurmctld and slurmdbd of changed files. A changed annotation makes them read a pod's ConfigMaps at once,
instead of within a minute. The annotation changes twice, as the kubelet may hear of the pod before the ConfigMap. It counts these changes,
so the next controller makes a missing second one. Measured: docs/explain/slurm-facts.md.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from controllers.files.progress import DaemonPod
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError
from controllers.runtime.informer import Informer
from controllers.runtime.structs import PODS, ConfigMap, Key
from controllers.runtime.writer import Writer
from names import annotations, labels

COMPONENT = f"{labels.COMPONENT}=slurmctld"
"""Selects slurmctld's pod, and the ConfigMap of Slurm's files that it mounts."""
ACCOUNTS = f"{labels.COMPONENT}=slurmdbd"
"""Selects slurmdbd's pod, in which accounts are kept."""
ACCOUNTS_FILES = f"{labels.COMPONENT} in (slurmdbd,users)"
"""Selects the ConfigMaps of the accounts and of the users in them."""

TWICE_AFTER_S = 3.0
AGAIN_S = 10.0
"""Seconds until the next try after an error."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Word:
    """A change of a pod's annotation, due at once or after a while."""

    pod: Key
    text: str
    is_second: bool


def plan_words(files: Iterable[ConfigMap], pods: Iterable[DaemonPod]) -> list[Word]:
    """The changes of the annotation that are due. Empty without a ConfigMap, as the pod keeps its files."""
    version = "-".join(
        config_map.metadata.resource_version for config_map in sorted(files, key=lambda config_map: config_map.metadata.name)
    )
    if not version:
        return []
    due: list[Word] = []
    for pod in pods:
        current = pod.metadata.annotations.get(annotations.FILES, "")
        if pod.metadata.deletion_timestamp is None and current != f"{version}.2":
            is_second = current == f"{version}.1"
            due.append(Word(pod.metadata.key, f"{version}.{2 if is_second else 1}", is_second))
    return due


class FileDelivery:
    """Follows two informers: of the ConfigMaps with a daemon's files, and of its pods."""

    def __init__(
        self,
        daemon: str,
        files: Informer[ConfigMap],
        pods: Informer[DaemonPod],
        writer: Writer,
        clock: Clock,
        twice_after_s: float = TWICE_AFTER_S,
    ) -> None:
        self._daemon, self._files, self._pods, self._writer, self._clock = daemon, files, pods, writer, clock
        self._twice_after_s = twice_after_s
        self._first_at: dict[tuple[Key, str], float] = {}
        """When each first change was made, or seen."""
        self._news = asyncio.Event()
        files.on_change(lambda _old, _new: self._news.set())
        pods.on_change(lambda _old, _new: self._news.set())

    async def run(self) -> None:
        """Looks at each change, for ever."""
        await self._files.synced.wait()
        await self._pods.synced.wait()
        while True:
            self._news.clear()
            try:
                wait_s = await self.look()
            except ApiError as error:
                log.warning(f"could not notify {self._daemon}'s kubelet of changed files", error=str(error))
                wait_s = AGAIN_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait_s)

    async def look(self) -> float | None:
        """Makes the changes that are due. Returns the seconds until a second change is due, None without one. Raises ApiError."""
        now = self._clock.now()
        due: list[float] = []
        for word in plan_words(self._files.store.values(), self._pods.store.values()):
            if word.is_second:
                due_at = self._first_at.setdefault((word.pod, word.text), now + self._twice_after_s)
                if now < due_at:
                    due.append(due_at - now)
                    continue
                self._first_at.clear()
            await self._writer.patch(PODS, word.pod, {"metadata": {"annotations": {annotations.FILES: word.text}}})
            log.info(f"notified {self._daemon}'s kubelet of changed files", pod=word.pod[1], files=word.text)
        return min(due, default=None)
