"""What is waited for and why it takes long, read from the statuses that a real API server gives."""

from typing import Any

import pytest

from standalone.readiness import stuck, troubles, waiting
from tests.unit.standalone.conftest import stateful_set


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
    assert [one.progress for one in waiting([workload])] == ([progress] if progress else [])


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
