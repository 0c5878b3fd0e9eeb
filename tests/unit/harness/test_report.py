"""The first lines of a failed test's report tell a person what they need."""

from typing import Any

import pytest

from tests.support import report
from tests.support.report import LINES, ROOT, WIDTH, ended_containers, head, node_set_trouble, pod_trouble

pytest_plugins = ("pytester",)

TEST = (str(ROOT / "tests/cluster/test_x.py"), 12, "eventually(\n    'idle', probe)")
INNER = (str(ROOT / "tests/support/cluster/dev_stack.py"), 45, "raise AssertionError(text)")
OUTSIDE = ("/usr/lib/python3/subprocess.py", 3, "raise TimeoutExpired")


def test_head_has_the_error_then_where_then_what_was_seen() -> None:
    assert head("AssertionError: not within 60 s: idle", [OUTSIDE, TEST, INNER], ["pod cpu-0 is being deleted", "sinfo: down"]) == [
        "What  AssertionError: not within 60 s: idle",
        "Where tests/cluster/test_x.py:12: eventually( 'idle', probe)",
        "      tests/support/cluster/dev_stack.py:45: raise AssertionError(text)",
        "Seen  pod cpu-0 is being deleted",
        "      sinfo: down",
    ]


def test_head_never_grows_beyond_its_lines() -> None:
    lines = head("\n".join(f"error {at}" for at in range(99)), [TEST] * 9, ["x" * 999] * 99)
    assert len(lines) == LINES
    assert max(map(len, lines)) <= WIDTH
    assert lines[0] == "What  error 0"
    assert lines[-1] == "      ... and 89 lines more below"


def container(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "ready": True, "restartCount": 0, **more}


@pytest.mark.parametrize(
    ("pod", "lines"),
    [
        pytest.param({"status": {"containerStatuses": [container("slurmd", {"running": {}})]}}, [], id="healthy"),
        pytest.param({"status": {"initContainerStatuses": [container("keys", {"terminated": {"exitCode": 0}})]}}, [], id="done"),
        pytest.param(
            {"status": {"phase": "Succeeded", "initContainerStatuses": [container("source", {"terminated": {"exitCode": 143}})]}},
            [],
            id="sidecar-of-a-pod-that-is-done",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}},
            ["pod p: 0/3 nodes"],
            id="no-room",
        ),
        pytest.param(
            {
                "status": {
                    "containerStatuses": [
                        container(
                            "slurmd",
                            {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
                            lastState={"terminated": {"exitCode": 3}},
                            restartCount=4,
                        )
                    ]
                }
            },
            ["pod p, container slurmd waits: CrashLoopBackOff back-off 10s, ended 4 times, last with code 3"],
            id="crashes",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "now"}, "status": {"containerStatuses": [container("a", {"running": {}}, ready=False)]}},
            ["pod p is being deleted", "pod p, container a is not ready"],
            id="ends",
        ),
    ],
)
def test_pods_say_what_keeps_them(pod: dict[str, Any], lines: list[str]) -> None:
    assert pod_trouble([pod | {"metadata": {"name": "p", **pod.get("metadata", {})}}]) == lines


def test_node_sets_say_what_is_not_as_it_should_be() -> None:
    conditions = [{"type": "Ready", "status": "True", "message": ""}, {"type": "Updated", "status": "False", "message": "cpu-1 waits"}]
    node_set = {"metadata": {"name": "cpu"}, "status": {"conditions": conditions}}
    assert node_set_trouble([node_set]) == ["node set cpu: Updated is False: cpu-1 waits"]


def test_containers_that_ended_come_before_those_that_wrote_last() -> None:
    logs = [("a", None, "1\n2\n3\n4\n"), ("b", None, "x\n\n"), ("c", None, "never shown"), ("d", 1, "fatal: no disk\n")]
    said = ["d ended with code 1", "| fatal: no disk", "a runs", "| 2", "| 3", "| 4", "b runs", "| x"]
    assert ended_containers(logs) == said


@pytest.mark.parametrize("more", [pytest.param((), id="alone"), pytest.param(("-n", "1"), id="in-processes")])
def test_head_stands_before_source_and_traceback(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makeconftest(
        """
        import pytest
        from tests.support import report

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            made = yield
            if made.failed:
                report.put_first(made, call.excinfo, ["pod cpu-0 is being deleted"])
            return made
        """
    )
    pytester.makepyfile("def helper():\n    assert 1 == 2, 'no node'\n\n\ndef test_it():\n    helper()\n")
    shown = pytester.runpytest_subprocess("-p", "no:cacheprovider", *more).outlines
    at = next(number for number, line in enumerate(shown) if line.startswith("____"))
    first = shown[at + 1 : at + 1 + report.LINES]
    assert [line for line in first if line.startswith(("What", "Seen"))] == [
        "What  AssertionError: no node",
        "Seen  pod cpu-0 is being deleted",
    ]
    assert any(line.startswith("FAILED test_head") and "no node" in line for line in shown)
