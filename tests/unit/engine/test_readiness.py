"""What is waited for and why it takes long, read from the statuses that a real API server gives."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.faults import SlipwayError
from engine.readiness import expectation, leaving, refusals, stuck, troubles, waiting
from engine.render import key_of
from tests.support.engine.recorded import stateful_set


def deployment(**status: int) -> dict[str, Any]:
    about = {"name": "login", "namespace": "slurm", "generation": 2}
    full = {"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, **status}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "login", "b": "c"}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec, "status": full}


@pytest.mark.parametrize(
    ("workload", "progress"),
    [
        pytest.param(stateful_set(), None, id="ready"),
        pytest.param(stateful_set(replicas=0, status_readyReplicas=0), None, id="none-wanted"),
        pytest.param(stateful_set(status_readyReplicas=1), "1 of 2 pods ready", id="one-missing"),
        pytest.param(stateful_set(status_observedGeneration=0), "not seen by its controller yet", id="unseen"),
        pytest.param(stateful_set(status_updatedReplicas=1), "1 of 2 pods have the new template", id="rolling"),
        pytest.param(
            stateful_set(status_updatedReplicas=0, spec_updateStrategy={"type": "OnDelete"}), None, id="on-delete-old-pods-are-fine"
        ),
        pytest.param(deployment(), None, id="deployment-ready"),
        pytest.param(deployment(replicas=3), "1 old pods still ending", id="deployment-surge"),
        pytest.param(deployment(updatedReplicas=0), "0 of 2 pods have the new template", id="deployment-rolling"),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j"},
                "status": {"conditions": [{"type": "Failed", "status": "True", "message": "backoff limit reached"}]},
            },
            "failed: backoff limit reached",
            id="job-failed",
        ),
        pytest.param(
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"completions": 2}, "status": {"succeeded": 1}},
            "1 of 2 done",
            id="job",
        ),
        pytest.param(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "d"},
                "spec": {},
                "status": {"observedGeneration": 1, "desiredNumberScheduled": 3, "numberReady": 2, "updatedNumberScheduled": 3},
            },
            "2 of 3 pods ready",
            id="daemon-set",
        ),
    ],
)
def test_a_workload_is_waited_for_until_it_is_ready(workload: dict[str, Any], progress: str | None) -> None:
    assert [workload.progress for workload in waiting([workload])] == ([progress] if progress else [])


def node_set(*, seen: int = 2, ready: str = "False", status: dict[str, Any] | None = None) -> dict[str, Any]:
    """A NodeSet as its controller left it."""
    condition = {"type": "Ready", "status": ready, "reason": "TooFewRegistered", "message": "1 of 2.", "observedGeneration": seen}
    return {
        "apiVersion": "slipway.dev/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": "gpu", "namespace": "slurm", "generation": 2},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": seen, "conditions": [condition], **(status or {})},
    }


SUMMED_UP = {"phase": "Progressing", "why": "1 of 2 wanted nodes are registered."}


@pytest.mark.parametrize(
    ("expression", "live", "progress"),
    [
        pytest.param("condition=Ready", node_set(ready="True"), None, id="met"),
        pytest.param("condition=ready", node_set(ready="True"), None, id="any-case"),
        pytest.param("condition=Ready=False", node_set(), None, id="another-value"),
        pytest.param("condition=Ready", node_set(), "Ready is False (TooFewRegistered: 1 of 2.)", id="not-yet"),
        pytest.param("condition=Ready", node_set(status=SUMMED_UP), "Progressing: 1 of 2 wanted nodes are registered.", id="its-own-words"),
        pytest.param("condition=Ready", node_set(seen=1, ready="True"), "not seen by its controller yet", id="of-an-older-spec"),
        pytest.param("condition=Ready", node_set(seen=1, status=SUMMED_UP), "not seen by its controller yet", id="words-of-an-older-spec"),
        pytest.param("condition=Other", node_set(), "not seen by its controller yet", id="no-such-condition-yet"),
        pytest.param("condition=Ready", {**node_set(), "status": {}}, "not seen by its controller yet", id="no-status"),
        pytest.param("jsonpath={.status.phase}", node_set(status={"phase": "x"}), None, id="path-with-any-value"),
        pytest.param("jsonpath={.status.phase}", node_set(), "{.status.phase} is not there yet", id="path-that-is-not-there"),
        pytest.param("jsonpath={.status.n}=2", node_set(status={"n": 2}), None, id="path-with-its-value"),
        pytest.param("jsonpath={.status.ok}=true", node_set(status={"ok": True}), None, id="path-with-a-flag"),
        pytest.param("jsonpath={.status.n}=2", node_set(status={"n": 1}), "{.status.n} is 1, not 2", id="path-with-another-value"),
        pytest.param(
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', node_set(ready="True"), None, id="path-with-a-filter-and-value"
        ),
    ],
)
def test_an_object_is_waited_for_as_the_stack_says(expression: str, live: dict[str, Any], progress: str | None) -> None:
    found = waiting([live], {key_of(live): [expectation(expression)]})
    assert [late.progress for late in found] == ([progress] if progress else [])


@pytest.mark.parametrize("expression", ["Ready", "condition=", "jsonpath=", "delete", "create=x"])
def test_what_is_no_expectation_is_refused(expression: str) -> None:
    with pytest.raises(SlipwayError, match=r"is neither condition=\.\.\. nor jsonpath=\.\.\."):
        expectation(expression)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("{.status.phase}", "Ready", id="field"),
        pytest.param("{$.status.phase}", "Ready", id="from-the-root"),
        pytest.param("{.status.zero}", "0", id="zero-is-there"),
        pytest.param("{.status.gone}", None, id="null-is-not"),
        pytest.param("{.status.nothing.below}", None, id="missing-on-the-way"),
        pytest.param("{.status.phase.below}", None, id="text-has-no-fields"),
        pytest.param("{.status.conditions[0].type}", "Ready", id="position"),
        pytest.param("{.status.conditions[7].type}", None, id="position-beyond"),
        pytest.param("{.status.conditions[*].type}", "Ready, Updated", id="all"),
        pytest.param('{.status.conditions[?(@.type=="Updated")].status}', "False", id="filter"),
        pytest.param("{.status.conditions[?(@.type == 'Ready')].status}", "True", id="filter-in-single-quotes"),
        pytest.param("{.status.conditions[?(@.why.n==3)].type}", "Updated", id="filter-by-a-number-deeper"),
        pytest.param('{.status.conditions[?(@.type=="Other")].status}', None, id="filter-that-nothing-meets"),
        pytest.param("{.metadata.labels['a.b/c']}", "x", id="quoted-name"),
        pytest.param(r"{.metadata.labels.a\.b/c}", "x", id="escaped-name"),
        pytest.param("{.status.a-b}", "dashed", id="name-with-a-dash"),
    ],
)
def test_path_leads_to_its_values(path: str, found: str | None) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Updated", "status": "False", "why": {"n": 3}}]
    status = {"phase": "Ready", "zero": 0, "gone": None, "a-b": "dashed", "conditions": conditions}
    live = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "labels": {"a.b/c": "x"}}, "status": status}
    [late] = waiting([live], {key_of(live): [expectation(f"jsonpath={path}=other")]})
    assert late.progress == f"{path} is {found or 'not there'}, not other"


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_a_clear_refusal(text: str) -> None:
    live = node_set()
    with contextlib.suppress(SlipwayError):
        waiting([live], {key_of(live): [expectation(f"jsonpath={text}")]})


def test_expectation_takes_the_place_of_the_kinds_own_readiness() -> None:
    workload = stateful_set(status_readyReplicas=1)
    assert waiting([workload]) != []
    assert waiting([workload], {key_of(workload): [expectation("jsonpath={.status.readyReplicas}")]}) == []


def test_pods_of_an_object_that_scales_are_found_by_what_it_says() -> None:
    live = node_set(status={"selector": "slipway.dev/cluster=dev,slipway.dev/nodeset=gpu"})
    [late] = waiting([live], {key_of(live): [expectation("condition=Ready")]})
    assert late.selector == "slipway.dev/cluster=dev,slipway.dev/nodeset=gpu"


@pytest.mark.parametrize(
    ("finalizers", "status", "words"),
    [
        pytest.param(["slipway.dev/drain"], {}, "waits for its finalizer slipway.dev/drain", id="finalizer"),
        pytest.param(["a/b", "c/d"], {}, "waits for its finalizers a/b, c/d", id="finalizers"),
        pytest.param(
            ["slipway.dev/drain"],
            {"phase": "Deleting", "why": "gpu-1 still busy."},
            "waits for its finalizer slipway.dev/drain (Deleting: gpu-1 still busy.)",
            id="says-why",
        ),
        pytest.param(["foregroundDeletion"], {}, "waits until what it owns, such as pods, is gone", id="foreground"),
        pytest.param([], {}, "is ending", id="pod"),
    ],
)
def test_what_holds_a_deletion_is_said(finalizers: list[str], status: dict[str, Any], words: str) -> None:
    live = node_set()
    live["metadata"]["finalizers"] = finalizers
    assert leaving([{**live, "status": status}]) == {key_of(live): words}


def test_only_a_failed_job_has_failed() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "status": {"conditions": [{"type": "Failed", "status": "True"}]},
    }
    assert waiting([job])[0].has_failed
    assert not waiting([stateful_set(status_readyReplicas=0)])[0].has_failed


def test_pods_are_asked_for_by_the_workloads_own_selector() -> None:
    assert waiting([deployment(readyReplicas=0)])[0].selector == "app=login,b=c"


def pod(name: str = "gpu-1", containers: list[dict[str, Any]] | None = None, revision: str = "new", **more: Any) -> dict[str, Any]:
    owner = [{"kind": "StatefulSet", "name": "gpu"}]
    about = {"name": name, "labels": {"controller-revision-hash": revision}, "ownerReferences": owner, **more.pop("metadata", {})}
    return {"metadata": about, "spec": more.pop("spec", {}), "status": {"phase": "Pending", "containerStatuses": containers or [], **more}}


def halted(reason: str, image: str = "registry.example.com/slurm:1", **more: Any) -> dict[str, Any]:
    return {
        "name": "slurmd",
        "image": image,
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason, "message": "why"}},
        **more,
    }


STARTED: dict[str, Any] = {"name": "slurmd", "state": {"running": {}}, "restartCount": 0}
UNSCHEDULABLE: dict[str, Any] = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: no"}
    ],
    "spec": {
        "nodeSelector": {"slipway.dev/pool": "workers"},
        "containers": [{"resources": {"requests": {"nvidia.com/gpu": "8", "cpu": "1"}}}],
    },
}


@pytest.mark.parametrize(
    ("given", "words", "hopeless"),
    [
        pytest.param(
            pod(**UNSCHEDULABLE),
            "no node with slipway.dev/pool=workers can take it (it asks for cpu 1, nvidia.com/gpu 8): 0/3 nodes are available: "
            "2 Insufficient nvidia.com/gpu. Make room",
            False,
            id="unschedulable",
        ),
        pytest.param(
            pod(containers=[halted("ErrImageNeverPull", "localhost/slipway/slurm:x")]),
            "image localhost/slipway/slurm:x is missing (ErrImageNeverPull); the node does not have it: `python -m images build`",
            True,
            id="local-image-missing",
        ),
        pytest.param(
            pod(containers=[halted("ImagePullBackOff")]),
            "image registry.example.com/slurm:1 cannot be pulled (ImagePullBackOff): why",
            False,
            id="pull",
        ),
        pytest.param(
            pod(containers=[halted("CreateContainerConfigError")]),
            "container slurmd cannot start: CreateContainerConfigError: why",
            False,
            id="config",
        ),
        pytest.param(
            pod(
                containers=[halted("CrashLoopBackOff", lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, restartCount=4)]
            ),
            "container slurmd keeps ending (exit code 137, OOMKilled, 4 restarts)",
            False,
            id="crash",
        ),
        pytest.param(
            pod(
                containers=[{"name": "check", "state": {"terminated": {"exitCode": 1, "message": "2 nodes expected, 1 there\n"}}}],
                phase="Failed",
            ),
            "container check ended with 1: 2 nodes expected, 1 there",
            False,
            id="termination-message",
        ),
        pytest.param(
            pod(
                initContainerStatuses=[{"name": "source", "state": {"terminated": {"exitCode": 143}}}],
                containers=[{"name": "fill", "state": {"terminated": {"exitCode": 3, "message": "another name\n"}}}],
                phase="Failed",
            ),
            "container fill ended with 3: another name",
            False,
            id="sidecar-ended-by-signal",
        ),
        pytest.param(pod(containers=[halted("ContainerCreating")]), "starting: slurmd", False, id="starting"),
    ],
)
def test_a_pod_that_is_not_ready_says_why(given: dict[str, Any], words: str, hopeless: bool) -> None:
    (found,) = troubles([given])
    assert found.pod == "gpu-1"
    assert words in found.reason
    assert found.is_hopeless == hopeless


def test_ready_and_ending_pods_are_no_trouble() -> None:
    assert troubles([pod(conditions=[{"type": "Ready", "status": "True"}]), pod(metadata={"deletionTimestamp": "now"})]) == []


def test_logs_are_asked_of_the_container_that_crashes() -> None:
    crashed: dict[str, Any] = {"lastState": {"terminated": {"exitCode": 1}}, "restartCount": 1}
    assert troubles([pod(containers=[halted("CrashLoopBackOff", **crashed)])])[0].logs_of == "slurmd"
    assert troubles([pod(containers=[{**STARTED, "ready": False, **crashed}])])[0].logs_of == "slurmd"


@pytest.mark.parametrize(
    ("given", "is_stuck"),
    [
        pytest.param(pod(revision="old", containers=[halted("ErrImageNeverPull")]), True, id="old-and-never-pulled"),
        pytest.param(pod(revision="old", **UNSCHEDULABLE), True, id="old-and-never-scheduled"),
        pytest.param(pod(revision="new", containers=[halted("ErrImageNeverPull")]), False, id="of-the-new-template"),
        pytest.param(pod(revision="old", containers=[halted("ContainerCreating")]), False, id="still-starting"),
        pytest.param(pod(revision="old", containers=[STARTED, halted("ImagePullBackOff")]), False, id="one-container-runs"),
        pytest.param(pod(revision="old", containers=[halted("ImagePullBackOff", restartCount=1)]), False, id="has-run-before"),
        pytest.param(pod(revision="old", containers=[halted("ImagePullBackOff")], phase="Running"), False, id="phase-running"),
        pytest.param(pod(revision="old", containers=[halted("ImagePullBackOff")], metadata={"ownerReferences": []}), False, id="nobodys"),
    ],
)
def test_only_a_pod_that_never_started_is_taken_out_of_the_way(given: dict[str, Any], is_stuck: bool) -> None:
    newest = stateful_set(status_updateRevision="new")
    assert stuck([newest], [given]) == (["gpu-1"] if is_stuck else [])


def probe_event(seconds: int, container: str = "reconfigure", probe: str = "Liveness") -> dict[str, Any]:
    return {
        "kind": "Event",
        "metadata": {"name": "dev-slurmctld-0.1", "namespace": "slurm"},
        "involvedObject": {"kind": "Pod", "name": "dev-slurmctld-0", "fieldPath": f"spec.containers{{{container}}}"},
        "lastTimestamp": f"2026-11-22T08:{seconds // 60:02}:{seconds % 60:02}Z",
        "message": f"{probe} probe failed: slurmctld refused Slurm's changed files: no MinJobAge\n",
    }


def test_refused_files_are_told_while_the_news_is_fresh() -> None:
    now = datetime(2026, 11, 22, 8, 20, tzinfo=UTC)
    nothing: dict[str, Any] = {"metadata": {}, "message": None}
    others = [probe_event(1190, "slurmctld"), probe_event(1190, probe="Readiness"), probe_event(500), nothing]
    assert refusals(others, now) == []
    assert refusals([*others, probe_event(1000), probe_event(1180)], now) == [
        "dev-slurmctld-0, 20 s ago: slurmctld refused Slurm's changed files: no MinJobAge. Find the line in its log: "
        "kubectl -n slurm logs dev-slurmctld-0 -c slurmctld"
    ]
