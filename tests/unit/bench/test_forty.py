"""The plain pods beside which forty workers are measured."""

from typing import Any

from tests.bench.forty import Run, build_plain


def container(name: str, cpu: str, memory: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": "256Mi"}}
    return {"name": name, "image": "slurm:1", "imagePullPolicy": "Never", "command": ["/start"], "resources": resources, "env": []}


def test_plain_pods_ask_for_what_a_worker_asks_for() -> None:
    spec = {
        "nodeSelector": {"pool": "workers"},
        "tolerations": [{"key": "pool"}],
        "containers": [container("slurmd", "5m", "48Mi")],
        "volumes": [{"name": "spool"}],
    }
    plain = build_plain({"metadata": {"labels": {"slipway.dev/nodeset": "cpu"}}, "spec": spec})
    pod = plain["spec"]["template"]
    assert plain["spec"]["podManagementPolicy"] == "Parallel"
    assert pod["metadata"]["labels"] == plain["spec"]["selector"]["matchLabels"] == {"app": "bench-plain"}
    assert (pod["spec"]["nodeSelector"], pod["spec"]["tolerations"]) == (spec["nodeSelector"], spec["tolerations"])
    (one,) = pod["spec"]["containers"]
    assert (one["image"], one["imagePullPolicy"], one["command"]) == ("slurm:1", "Never", ["sleep", "infinity"])
    assert one["resources"] == {"requests": {"cpu": "5m", "memory": "48Mi"}}


def test_ratio_is_of_the_plain_pods_of_the_same_run() -> None:
    assert Run(plain_s=4, out_s=10, in_s=3).ratio == 2.5
