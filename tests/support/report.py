"""The head of a failed test's report: what failed, where, and what the objects say. It is twenty lines at most and stands before all else;
the test's source, the traceback and long listings follow it.

Nothing here asks a cluster: tests/support/cluster/session.py and tests/support/slurm/session.py bring what was
seen.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative

ROOT = Path(__file__).parents[2]
LINES, WIDTH = 20, 200
_MESSAGE, _FRAMES = 6, 3


def put_first(report: pytest.TestReport, error: pytest.ExceptionInfo[BaseException], seen: Iterable[str]) -> None:
    """Puts the head before the traceback of a failed test's report."""
    if isinstance(report.longrepr, ExceptionChainRepr):
        frames = [(str(entry.path), entry.lineno + 1, str(entry.statement)) for entry in error.traceback]
        text = "\n".join(head(error.exconly(), frames, list(seen)))
        traceback = report.longrepr.chain[0][0]
        traceback.reprentries = [ReprEntryNative([f"{text}\n\n"]), *traceback.reprentries]


def head(message: str, frames: Sequence[tuple[str, int, str]], seen: Sequence[str]) -> list[str]:
    """The lines: the error's own words, the tests' frames (file, line, source) with the innermost last, and what was seen."""
    own = [
        f"{Path(path).relative_to(ROOT)}:{line}: {' '.join(source.split())}"
        for path, line, source in frames
        if Path(path).is_relative_to(ROOT / "tests") and Path(path).name not in {"conftest.py", "session.py"}
    ]
    parts = (("What", _few(message.strip().splitlines(), _MESSAGE)), ("Where", own[-_FRAMES:]))
    lines = [line for label, texts in parts for line in _labelled(label, texts)]
    return [*lines, *_labelled("Seen", _few(list(seen), LINES - len(lines)))]


def _labelled(label: str, texts: Iterable[str]) -> list[str]:
    return [f"{label if at == 0 else '':<6}{text}"[:WIDTH].rstrip() for at, text in enumerate(texts)]


def _few(lines: list[str], most: int) -> list[str]:
    """The first lines, and how many more there are."""
    return lines if len(lines) <= most else [*lines[: most - 1], f"... and {len(lines) - most + 1} lines more below"]


def ended_containers(logs: Iterable[tuple[str, int | None, str]]) -> list[str]:
    """What a reader wants of containers (name, exit code or None, log; the one that wrote last comes first): the last words of those that
    ended, then of the two that wrote last."""
    known = list(logs)
    ended = [(f"{name} ended with code {code}", log) for name, code, log in known if code is not None]
    alive = [(f"{name} runs", log) for name, code, log in known if code is None]
    return [line for title, log in [*ended, *alive[:2]] for line in (title, *(f"| {word}" for word in last_words(log)))]


def last_words(log: str, most: int = 3) -> list[str]:
    """The last lines of a log that say something."""
    return [line for line in log.splitlines() if line.strip()][-most:]


def pod_trouble(pods: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each container that does not run as it should and each pod that no node has taken. Pods are given as by kubectl."""
    lines: list[str] = []
    for pod in pods:
        name, status = pod["metadata"]["name"], pod.get("status", {})
        if status.get("phase") == "Succeeded":  # its sidecars were ended by a signal
            continue
        if "deletionTimestamp" in pod["metadata"]:
            lines.append(f"pod {name} is being deleted")
        if status.get("phase") == "Failed":
            lines.append(f"pod {name} failed: {status.get('reason', '')} {status.get('message', '')}")
        lines += [
            f"pod {name}: {condition.get('message', condition['reason'])}"
            for condition in status.get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            lines += _container_trouble(f"pod {name}, container {container['name']}", container)
    return lines


def _container_trouble(where: str, container: dict[str, Any]) -> list[str]:
    state, before = container.get("state", {}), container.get("lastState", {}).get("terminated", {})
    last = f", ended {container['restartCount']} times, last with code {before['exitCode']}" if before else ""
    if waiting := state.get("waiting"):
        return [f"{where} waits: {waiting.get('reason', '')} {waiting.get('message', '')}{last}"]
    if ended := state.get("terminated"):
        return [f"{where} ended with code {ended['exitCode']}: {ended.get('reason', '')}"] if ended["exitCode"] else []
    return [f"{where} is not ready{last}"] if not container.get("ready", True) else []


def node_set_trouble(node_sets: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each condition of a node set that is not as in a settled one, in the controller's own words."""
    return [
        f"node set {node_set['metadata']['name']}: {condition['type']} is {condition['status']}: {condition.get('message', '')}"
        for node_set in node_sets
        for condition in node_set.get("status", {}).get("conditions", [])
        if condition["status"] != "True"
    ]
