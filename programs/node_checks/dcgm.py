"""Health check of GPUs by NVIDIA's own diagnostics: `dcgmi diag`, at one of its levels. Runs on the node.

Settings: `level` (1 to 4), `command`. If no host engine answers on the node, the check starts one on a socket of its own. It runs as
Slurm's user, so DCGM skips tests that need root. Warnings and skipped tests are not failures.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

from .vendor import CannotRunError, Ended, find, hardware_fault, last_line, run

_REMEDY = "install datacenter-gpu-manager where the worker finds it (docs/reference/checks.md)"
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""Of DCGM 4, and of 2 and 3."""
_PASSED, _FAILED = "pass", "fail"
_STARTS_S = 30.0
_POLL_S = 0.1
_ENDS_S = 10
_MOST_WORDS = 200


@dataclass(frozen=True)
class Found:
    """The result of one test for one GPU, or for all."""

    test: str
    gpu: str
    """Its number, or several; empty for the node."""
    status: str
    """`pass`, `fail`, `warn`, `skip` or another word of DCGM's, in lower case."""
    words: str = ""


def read(text: str) -> "tuple[list[Found], str]":
    """All results, and what kept DCGM from running; both empty if the text is not dcgmi's answer."""
    try:
        document: Any = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return [], ""
    if not isinstance(document, dict):
        return [], ""
    answer = cast("dict[str, Any]", document)
    root = next((answer[key] for key in _ROOTS if isinstance(answer.get(key), dict)), answer)
    error = _words(root.get("runtime_error") or answer.get("runtime_error"))
    tests = [*_dicts(root.get("tests")), *(test for group in _dicts(root.get("test_categories")) for test in _dicts(group.get("tests")))]
    return [result for test in tests for result in _results(test)], error


def _results(test: "dict[str, Any]") -> "Iterator[Found]":
    """DCGM 4 adds a summary of all GPUs. That counts only if it is worse than their own results."""
    name = str(test.get("name", "a test"))
    results = [_found(name, result) for result in _dicts(test.get("results"))]
    yield from results
    summary = test.get("test_summary")
    if isinstance(summary, dict):
        total = _found(name, cast("dict[str, Any]", summary))
        if not results or (total.status == _FAILED and all(single.status != _FAILED for single in results)):
            yield total


def _found(test: str, result: "dict[str, Any]") -> Found:
    gpu = next((str(result[key]) for key in ("entity_id", "gpu_id", "gpu_ids") if key in result), "")
    if str(result.get("entity_group", "GPU")) != "GPU" and gpu:
        gpu = f"{result['entity_group']} {gpu}"
    return Found(test, gpu[:_MOST_WORDS], str(result.get("status", "")).strip().lower(), _words(result.get("warnings")))


def _words(value: Any) -> str:
    """Warnings are a text, a list of texts, or a list of objects with the text as `warning`."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(_words, cast("list[Any]", value))))[:_MOST_WORDS]
    if isinstance(value, dict):
        return _words(cast("dict[str, Any]", value).get("warning"))
    return " ".join(value.split())[:_MOST_WORDS] if isinstance(value, str) else ""


def _dicts(value: Any) -> "list[dict[str, Any]]":
    return [item for item in cast("list[Any]", value) if isinstance(item, dict)] if isinstance(value, list) else []


def judge(ended: Ended, level: int) -> "tuple[str, str]":
    """`passed`, `failed` or `unknown`, and what was found; every test that failed is named. dcgmi's exit code adds nothing: it is not 0 if
    a test failed."""
    results, error = read(ended.output)
    faults = [f"{_on(result)}: {result.words or 'failed'}" for result in results if result.status == _FAILED]
    if faults:
        return "failed", "; ".join(faults)
    if fault := hardware_fault(ended.text):
        return "failed", fault
    if not results:
        return "unknown", f"dcgmi did not run its tests: {error}" if error else f"dcgmi {ended.how}"
    passed = sum(result.status == _PASSED for result in results)
    not_passed = [result for result in results if result.status != _PASSED]
    notes = "; ".join(
        f"{_on(result)} {result.status or 'without a result'}{f' ({result.words})' if result.words else ''}" for result in not_passed[:3]
    )
    beside = f"; {len(not_passed)} not: {notes}" if not_passed else ""
    if error or not passed:
        return "unknown", f"dcgmi has passed {passed} tests of level {level}: {error or 'none could run'}{beside}"
    return "passed", f"dcgmi passed {passed} tests of level {level}{beside}"


def _on(result: Found) -> str:
    where = f" on {result.gpu if result.gpu.partition(' ')[2] else f'GPU {result.gpu}'}" if result.gpu else ""
    return f"{result.test}{where}"


@contextlib.contextmanager
def host_engine(dcgmi: "list[str]") -> "Generator[list[str]]":
    """The arguments that lead dcgmi to a host engine: none if one answers, else those of one that lives as long as this. Raises
    CannotRunError if it does not start."""
    if run([*dcgmi, "discovery", "-l"]).code == 0:
        yield []
        return
    program = find([], "nv-hostengine", (), _REMEDY)
    with tempfile.TemporaryDirectory(prefix="slipway-dcgm-") as folder:
        socket, printed = Path(folder, "socket"), Path(folder, "said")
        command = [*program, "--no-daemon", "--domain-socket", str(socket), "--pid", f"{folder}/pid", "--log-filename", f"{folder}/log"]
        with printed.open("wb") as into:
            engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=into, stderr=into)
        try:
            _wait_for(engine, socket, printed)
            yield ["--host", f"unix://{socket}"]
        finally:
            engine.terminate()
            try:
                engine.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                engine.kill()
                engine.wait()


def _wait_for(engine: "subprocess.Popen[bytes]", socket: Path, printed: Path) -> None:
    end = time.monotonic() + _STARTS_S
    while not socket.exists():
        if engine.poll() is not None:
            message = last_line(printed.read_text(encoding="utf-8", errors="replace")) or "printed nothing"
            raise CannotRunError(f"nv-hostengine ended with {engine.returncode}: {message}")
        if time.monotonic() > end:
            raise CannotRunError(f"nv-hostengine did not listen within {_STARTS_S:.0f} s")
        time.sleep(_POLL_S)


def _end(number: int, _: "FrameType | None") -> None:
    """Exits so that the host engine and its folder go, too."""
    sys.exit(128 + number)


def main() -> None:
    settings = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, _end)
    os.environ.setdefault("HOME", "/tmp")  # noqa: S108 - DCGM writes its logs there
    try:
        dcgmi = find(settings["command"], "dcgmi", (), _REMEDY)
        with host_engine(dcgmi) as where:
            ended = run([*dcgmi, "diag", "-r", str(settings["level"]), "-j", *where])
        result, found = judge(ended, settings["level"])
    except CannotRunError as error:
        result, found = "unknown", str(error)
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
