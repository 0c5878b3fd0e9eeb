"""How `up` waits for Slurm's files, by what slurmctld's pod says of them."""

from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from engine import slurm_files
from engine.api import RefusedError
from engine.changes import ObjectChange
from engine.cluster import Home
from engine.faults import SlipwayError
from engine.render import Document, key_of
from engine.screen import Screen
from engine.slurm_files import Progress, find_changed, read_progress
from names import annotations, conditions
from slurm.files import content_hash

FILES = content_hash({"slurm.conf": b"a"})


def config(name: str = "dev-slurm-config", component: str = "slurmctld") -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": component, "slipway.dev/cluster": "dev"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "slurm", "labels": labels},
        "data": {"slurm.conf": "a"},
    }


def change(manifest: dict[str, Any], op: str = "update") -> ObjectChange:
    return ObjectChange(op, key_of(manifest), Document(cast(Any, None), manifest, {}))  # pyright: ignore[reportArgumentType] - an operation


def pod(reason: str, message: str = "words", files: str = FILES, **about: Any) -> dict[str, Any]:
    said = [{"type": "Ready", "status": "True"}, {"type": conditions.FILES_LIVE, "reason": reason, "message": message}]
    meta = {"name": "dev-slurmctld-0", "annotations": {annotations.FILES_HASH: files}, **about}
    return {"metadata": meta, "status": {"conditions": said}}


def test_only_slurmctlds_changed_files_are_waited_for() -> None:
    others = [change(config("dev-login-config", "login")), change({**config(), "kind": "Secret"})]
    assert find_changed([*others, change(config())]) == [key_of(config())]


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        pytest.param([], Progress(), id="no-pod"),
        pytest.param([pod("Live", files="other")], Progress(), id="said-of-other-files"),
        pytest.param([pod("Live", deletionTimestamp="now")], Progress(), id="a-pod-that-ends"),
        pytest.param([pod("Refused", "no MinJobAge")], Progress("Refused", "no MinJobAge"), id="said-of-these"),
    ],
)
def test_condition_counts_for_the_files_that_it_names(pods: list[dict[str, Any]], found: Progress) -> None:
    assert read_progress(pods, FILES) == found


class Waiting:
    """`up`, waiting, at a time that runs when it sleeps; the pod is what the test says it is at that time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pod_at: Callable[[float], dict[str, Any]]) -> None:
        self.now, self.shown = 0.0, StringIO()
        api = SimpleNamespace(find=self._find, list=self._list)
        self._pod_at = pod_at
        self._home = cast(Home, SimpleNamespace(api=api, namespace="slurm"))
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        monkeypatch.setattr(slurm_files, "time", clock)

    def _find(self, _key: object) -> dict[str, Any]:
        return config()

    def _list(self, _sort: object, namespace: str, labelSelector: str) -> list[dict[str, Any]]:  # noqa: N803 - the API's own word
        assert (namespace, labelSelector) == ("slurm", "app.kubernetes.io/component=slurmctld,slipway.dev/cluster=dev")
        return [self._pod_at(self.now)]

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, timeout_s: float = 600) -> str:
        slurm_files.wait(self._home, [change(config())], Screen(Console(file=self.shown, width=200)), timeout_s)
        return " ".join(self.shown.getvalue().split())


def test_up_ends_when_these_files_are_live(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, lambda now: pod("Live", "all 300", FILES if now >= 5 else "old"))
    assert "Slurm's files are live: all 300" in waiting.run()
    assert waiting.now == 5


def test_up_fails_at_once_with_slurmctlds_words(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, lambda now: pod("Refused" if now >= 2 else "Delivering", "no MinJobAge"))
    with pytest.raises(SlipwayError, match="not in use: no MinJobAge"):
        waiting.run()
    assert waiting.now == 2


def test_up_ends_well_while_jobs_hold_the_change_up(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, lambda _: pod("Waiting", "wait for: node gpu-1"))
    assert "not in use everywhere yet: wait for: node gpu-1" in waiting.run()


def test_short_wait_for_a_drain_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, lambda now: pod("Waiting" if now < 10 else "Live"))
    assert "not in use" not in waiting.run()


def test_slurmds_that_stay_behind_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not in use everywhere yet: 1 of 2" in Waiting(monkeypatch, lambda _: pod("SlurmdsBehind", "1 of 2")).run()


def test_files_that_never_arrive_fail_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, lambda _: pod("Live", files="old"))
    with pytest.raises(SlipwayError, match="not live after 30 s: the NodeSet controller has not reported"):
        waiting.run(30)


def test_user_who_may_not_read_pods_is_not_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: float) -> dict[str, Any]:
        raise RefusedError("forbidden", 403, "Forbidden")

    assert Waiting(monkeypatch, refuse).run() == ""
