"""The check by NVIDIA's diagnostics: what dcgmi's JSON says in DCGM 3 and 4, and a host engine that is there, or is started, or is not."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks import dcgm
from programs.node_checks.vendor import Ended
from tests.unit.programs.node_checks import recorded_vendors as recorded
from tests.unit.programs.node_checks.vendors import answer, has_ended, run_check, stand_in, wait_until

LEVEL: dict[str, Any] = {"level": 2, "command": []}


def version_3(**statuses: str) -> dict[str, Any]:
    """The recorded answer of DCGM 3 with other results, by the test's name without spaces."""
    document: dict[str, Any] = copy.deepcopy(recorded.DCGM_3_SKIPPED)
    for category in document["DCGM GPU Diagnostic"]["test_categories"]:
        for test in category["tests"]:
            test["results"][0]["status"] = statuses.get(test["name"].replace(" ", ""), "Pass")
    return document


def version_4(status: str = "Pass", summary: str = "Pass", warnings: Any = None) -> dict[str, Any]:
    """The recorded answer of DCGM 4 with another result of its test."""
    document: dict[str, Any] = copy.deepcopy(recorded.DCGM_4_PERSISTENCE)
    test = document["DCGM Diagnostic"]["test_categories"][0]["tests"][0]
    test["results"][0] |= {"status": status, "warnings": warnings or []}
    test["test_summary"] = {"status": summary}
    return document


def with_words(words: Any) -> dict[str, Any]:
    document = version_3(PCIe="Fail")
    document["DCGM GPU Diagnostic"]["test_categories"][0]["tests"][0]["results"][0]["warnings"] = words
    return document


SWITCH = version_4("Fail", "Fail")
SWITCH["DCGM Diagnostic"]["test_categories"][0]["tests"][0]["results"][0] |= {"entity_group": "Switch", "entity_id": 3}


@pytest.mark.parametrize(
    ("document", "code", "result", "found"),
    [
        pytest.param(version_3(), 0, "passed", "dcgmi passed 3 tests of level 2", id="3-passed"),
        pytest.param(version_3(PCIe="Fail"), 226, "failed", "PCIe on GPU 0: failed", id="3-failed"),
        pytest.param(with_words("Link\tis slow"), 226, "failed", "PCIe on GPU 0: Link is slow", id="3-warning-is-a-text"),
        pytest.param(with_words(["one", {"warning": "two"}]), 226, "failed", "PCIe on GPU 0: one; two", id="3-warnings-are-a-list"),
        pytest.param(
            version_3(PCIe="Warn", Diagnostic="Skip"),
            0,
            "passed",
            "dcgmi passed 1 tests of level 2; 2 not: PCIe on GPU 0 warn; Diagnostic on GPU 0 skip",
            id="3-warnings-and-skipped-tests-are-no-failure",
        ),
        pytest.param(
            recorded.DCGM_3_SKIPPED,
            0,
            "unknown",
            "dcgmi has passed 0 tests of level 2: none could run; 3 not: "
            "PCIe on GPU 0 skip; GPU Memory on GPU 0 skip; Diagnostic on GPU 0 skip",
            id="3-all-skipped",
        ),
        pytest.param(version_4(), 0, "passed", "dcgmi passed 1 tests of level 2", id="4-passed"),
        pytest.param(
            recorded.DCGM_4_PERSISTENCE,
            recorded.DCGM_4_CODE,
            "failed",
            "software on GPU 0: Persistence Mode: Persistence mode for GPU 0 is disabled.",
            id="4-failed-as-recorded",
        ),
        pytest.param(version_4("Pass", "Fail"), 226, "failed", "software: failed", id="4-the-sum-is-worse"),
        pytest.param(SWITCH, 226, "failed", "software on Switch 3: failed", id="4-switch"),
        pytest.param(version_4("Skip", "Skip"), 0, "unknown", "1 not: software on GPU 0 skip", id="4-all-skipped"),
        pytest.param({"tests": [{"name": "memory", "results": [{"gpu_id": 1, "status": "PASS"}]}]}, 0, "passed", "1 tests", id="flat"),
        pytest.param(
            {"DCGM Diagnostic": {"runtime_error": "no GPU is supported"}},
            1,
            "unknown",
            "dcgmi did not run its tests: no GPU is supported",
            id="refused",
        ),
        pytest.param(
            version_4() | {"runtime_error": "cut"}, 0, "unknown", "passed 1 tests of level 2: cut", id="ended-before-the-last-test"
        ),
        pytest.param({"DCGM Diagnostic": []}, 0, "unknown", "dcgmi ended with 0", id="other-shape"),
    ],
)
def test_answer_is_judged(document: dict[str, Any], code: int, result: str, found: str) -> None:
    said, words = dcgm.judge(Ended(code, f"Successfully ran diagnostic for group.\n{json.dumps(document, indent=1)}\n", ""), 2)
    assert said == result
    assert found in words


@pytest.mark.parametrize(
    ("ended", "result"),
    [
        pytest.param(Ended(1, "", recorded.DCGM_UNREACHABLE), "unknown", id="no-engine"),
        pytest.param(Ended(-11, "", ""), "unknown", id="crashed"),
        pytest.param(Ended(0, "", ""), "unknown", id="silent"),
        pytest.param(Ended(1, "", "Unable to determine the device handle: GPU is lost\n"), "failed", id="lost"),
    ],
)
def test_what_is_no_answer_is_unknown(ended: Ended, result: str) -> None:
    assert dcgm.judge(ended, 2)[0] == result


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["Pass", "Fail", "Skip"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "DCGM Diagnostic",
                    "DCGM GPU Diagnostic",
                    "test_categories",
                    "tests",
                    "results",
                    "status",
                    "warnings",
                    "test_summary",
                    "entity_group",
                    "entity_id",
                    "name",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(st.text() | JSON.map(json.dumps), st.integers(0, 2))
def test_no_text_is_an_error_and_only_a_pass_passes(text: str, code: int) -> None:
    said, _ = dcgm.judge(Ended(code, text, ""), 2)
    found, error = dcgm.read(text)
    statuses = {each.status for each in found}
    assert (said == "passed") == ("pass" in statuses and "fail" not in statuses and not error)


ENGINE = """#!/usr/bin/env python3
import os, signal, socket, sys
folder = os.path.dirname(os.path.abspath(__file__))
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[sys.argv.index("--domain-socket") + 1])
open(folder + "/engine", "w").write(f"{os.getpid()}\\n")
signal.pause()
"""
ASKS = 'printf "%s\\n" "$*" >>"$here/asked"; case "$*" in discovery*) [ "$ENGINE" ] || { cat "$here/none" >&2; exit 1; };; esac'


def install(folder: Path, document: dict[str, Any], engine: str = ENGINE) -> Path:
    stand_in(folder, "dcgmi", json.dumps(document), first=ASKS)
    (folder / "none").write_text(recorded.DCGM_UNREACHABLE)
    (folder / "nv-hostengine").write_text(engine)
    (folder / "nv-hostengine").chmod(0o755)
    return folder


def test_engine_that_answers_is_used(tmp_path: Path) -> None:
    said = answer(run_check("dcgm", LEVEL, install(tmp_path, version_4()), ENGINE="1"))
    assert said == {"result": "passed", "found": "dcgmi passed 1 tests of level 2"}
    assert (tmp_path / "asked").read_text() == "discovery -l\ndiag -r 2 -j\n"


def test_engine_is_started_for_the_check_and_ends_with_it(tmp_path: Path) -> None:
    said = answer(run_check("dcgm", LEVEL | {"level": 1}, install(tmp_path, recorded.DCGM_4_PERSISTENCE)))
    assert said["result"] == "failed"
    asked = (tmp_path / "asked").read_text().splitlines()[1]
    assert asked.startswith("diag -r 1 -j --host unix:///")
    assert has_ended((tmp_path / "engine").read_text().strip())
    assert not Path(asked.partition("unix://")[2]).parent.exists()


def test_engine_that_does_not_start_is_unknown(tmp_path: Path) -> None:
    install(tmp_path, version_4(), "#!/bin/sh\necho 'Err: Failed to start DCGM Server: -7'\nexit 255\n")
    said = answer(run_check("dcgm", LEVEL, tmp_path))
    assert said == {"result": "unknown", "found": "nv-hostengine ended with 255: Err: Failed to start DCGM Server: -7"}


@pytest.mark.parametrize("missing", ["dcgmi", "nv-hostengine"])
def test_missing_program_is_unknown_and_says_what_to_install(missing: str, tmp_path: Path) -> None:
    (install(tmp_path, version_4()) / missing).unlink()
    said = answer(run_check("dcgm", LEVEL, tmp_path))
    assert said["result"] == "unknown"
    assert f"{missing} is not on this node: install datacenter-gpu-manager" in said["found"]


def test_diagnostics_that_hang_are_ended_with_their_engine(tmp_path: Path) -> None:
    install(tmp_path, version_4())
    stand_in(tmp_path, "dcgmi", "", first=f'{ASKS}; case "$*" in diag*) echo $$ >"$here/pid"; exec sleep 600;; esac')
    assert run_check("dcgm", LEVEL, tmp_path, timeout_s=3).returncode == 124
    assert has_ended((tmp_path / "pid").read_text().strip())
    assert has_ended((tmp_path / "engine").read_text().strip())
    socket = (tmp_path / "asked").read_text().strip().partition("unix://")[2]
    assert socket
    assert wait_until(lambda: not Path(socket).parent.exists())
