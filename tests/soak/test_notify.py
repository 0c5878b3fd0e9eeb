"""Webhooks on the real cluster: the receivers of a stack file hear of a user's job and of a node.

Quick: tests/slurm/test_notify.py, with the real program beside a real slurmctld.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually

SINK = "try-sink"
HEARS = """
import http.server

class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.HTTPServer(("", 8080), Sink).serve_forever()
"""
RECEIVERS = [
    {"name": "chat", "urlSecret": SINK, "users": ["alice"], "events": ["jobEnd"]},
    {"name": "ops", "kind": "webhook", "urlSecret": SINK, "events": ["nodeDrain", "nodeResume"]},
]


@pytest.fixture
def sink(restored: DevStack) -> Iterator[DevStack]:
    """The stack with two receivers, whose messages end in the log of a pod."""
    image = restored.get("deployment", "dev-login")["spec"]["template"]["spec"]["containers"][0]["image"]
    container = {"name": "sink", "image": image, "command": ["python3", "-c", HEARS]}
    about = {"name": SINK, "labels": {"app": SINK}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [container], "nodeName": "system"}}
    restored.kubectl("create", "--filename", "-", stdin=json.dumps(pod))
    restored.kubectl("wait", "--for=condition=Ready", f"pod/{SINK}", "--timeout=60s")
    address = restored.get("pod", SINK)["status"]["podIP"]
    restored.kubectl("create", "secret", "generic", SINK, f"--from-literal=url=http://{address}:8080/")
    restored.slipway("up", "--config", f"cluster.notifications.receivers={json.dumps(RECEIVERS)}")
    restored.wait_until_settled()
    yield restored
    restored.kubectl("delete", f"pod/{SINK}", f"secret/{SINK}", "--wait=false")


def test_ended_job_and_drained_node_are_told_once(sink: DevStack) -> None:
    job = sink.submit("#!/bin/bash\nexit 3\n", "--output=/dev/null", "--job-name=fails")
    sink.wait_for_job(job, "FAILED")

    def told() -> list[dict[str, Any]]:
        return [json.loads(line) for line in sink.kubectl("logs", SINK).splitlines()]

    said = eventually("the job is told", lambda: [each for each in told() if f"Job {job} (fails)" in json.dumps(each)], 120)
    assert "failed" in said[0]["text"], said
    sink.slurm("scontrol update NodeName=cpu-1 State=DRAIN Reason='its fan is loud'")
    drained = eventually("the drain is told", lambda: [each for each in told() if each.get("event") == "nodeDrain"], 120)
    assert "its fan is loud" in json.dumps(drained[0])
    sink.slurm("scontrol update NodeName=cpu-1 State=RESUME")
    eventually("the return is told", lambda: [each for each in told() if each.get("event") == "nodeResume"], 120)
    assert len(told()) == 3, told()
