"""Health check of GPUs by NVIDIA's own diagnostics: `dcgmi diag`, at one of its levels. Runs on the node.

Settings: `level` (1 to 4), `command`. dcgmi asks a host engine. Where none answers on the node, this starts one for as long as the check
takes, on a socket of its own: dcgmi has no engine inside. It runs as Slurm's user, so tests that need root are skipped by DCGM. A test that
DCGM fails is a failure; a warning or a skipped test is none.
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

_REMEDY = "install datacenter-gpu-manager where the worker finds it (docs/health.md)"
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
    """All results, and what kept DCGM from running; both empty where the text is no answer of dcgmi's."""
    try:
        document: Any = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return [], ""
    if not isinstance(document, dict):
        return [], ""
    whole = cast("dict[str, Any]", document)
    root = next((whole[key] for key in _ROOTS if isinstance(whole.get(key), dict)), whole)
    error = _words(root.get("runtime_error") or whole.get("runtime_error"))
    tests = [*_dicts(root.get("tests")), *(test for each in _dicts(root.get("test_categories")) for test in _dicts(each.get("tests")))]
    return [found for test in tests for found in _results(test)], error


def _results(test: "dict[str, Any]") -> "Iterator[Found]":
    """Of one test. DCGM 4 sums all GPUs up beside them; that counts only where it is worse than what they say."""
    name = str(test.get("name", "a test"))
    each = [_found(name, result) for result in _dicts(test.get("results"))]
    yield from each
    summary = test.get("test_summary")
    if isinstance(summary, dict):
        whole = _found(name, cast("dict[str, Any]", summary))
        if not each or (whole.status == _FAILED and all(one.status != _FAILED for one in each)):
            yield whole


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
    return [each for each in cast("list[Any]", value) if isinstance(each, dict)] if isinstance(value, list) else []


def judge(ended: Ended, level: int) -> "tuple[str, str]":
    """`passed`, `failed` or `unknown`, and what was found; every test that failed is named. dcgmi's exit code says no more: it is
    not 0 where a test failed."""
    found, error = read(ended.output)
    faults = [f"{_on(each)}: {each.words or 'failed'}" for each in found if each.status == _FAILED]
    if faults:
        return "failed", "; ".join(faults)
    if fault := hardware_fault(ended.text):
        return "failed", fault
    if not found:
        return "unknown", f"dcgmi did not run its tests: {error}" if error else f"dcgmi {ended.how}"
    passed = sum(each.status == _PASSED for each in found)
    others = [each for each in found if each.status != _PASSED]
    notes = "; ".join(f"{_on(each)} {each.status or 'without a result'}{f' ({each.words})' if each.words else ''}" for each in others[:3])
    beside = f"; {len(others)} not: {notes}" if others else ""
    if error or not passed:
        return "unknown", f"dcgmi has passed {passed} tests of level {level}: {error or 'none could run'}{beside}"
    return "passed", f"dcgmi passed {passed} tests of level {level}{beside}"


def _on(found: Found) -> str:
    where = f" on {found.gpu if found.gpu.partition(' ')[2] else f'GPU {found.gpu}'}" if found.gpu else ""
    return f"{found.test}{where}"


@contextlib.contextmanager
def host_engine(dcgmi: "list[str]") -> "Generator[list[str]]":
    """The words that lead dcgmi to a host engine: none where one answers, else those to one that lives as long as this. Raises
    CannotRunError where it does not start."""
    if run([*dcgmi, "discovery", "-l"]).code == 0:
        yield []
        return
    program = find([], "nv-hostengine", (), _REMEDY)
    with tempfile.TemporaryDirectory(prefix="slipway-dcgm-") as folder:
        socket, said = Path(folder, "socket"), Path(folder, "said")
        words = [*program, "--no-daemon", "--domain-socket", str(socket), "--pid", f"{folder}/pid", "--log-filename", f"{folder}/log"]
        with said.open("wb") as into:
            engine = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=into, stderr=into)
        try:
            _wait_for(engine, socket, said)
            yield ["--host", f"unix://{socket}"]
        finally:
            engine.terminate()
            try:
                engine.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                engine.kill()
                engine.wait()


def _wait_for(engine: "subprocess.Popen[bytes]", socket: Path, said: Path) -> None:
    end = time.monotonic() + _STARTS_S
    while not socket.exists():
        if engine.poll() is not None:
            words = last_line(said.read_text(encoding="utf-8", errors="replace")) or "printed nothing"
            raise CannotRunError(f"nv-hostengine ended with {engine.returncode}: {words}")
        if time.monotonic() > end:
            raise CannotRunError(f"nv-hostengine did not listen within {_STARTS_S:.0f} s")
        time.sleep(_POLL_S)


def _end(number: int, _: "FrameType | None") -> None:
    """The host engine and its folder go, too."""
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
