"""A cluster of any size as Slurm and Kubernetes tell it, for tests of the page and its pictures. The same each time."""

import random
from collections.abc import Sequence
from typing import Any

from controllers.page.history import Point

NOW = 1_800_000_000
PER_SET = 8
"""GPUs of a node."""
CAUSES = (
    ("check/gpu", "GPU 3: 12 uncorrectable errors in memory", "health check gpu", "An administrator has the machine repaired."),
    ("machine-not-ready", "the machine ip-10-0-4-17 does not answer Kubernetes", "Kubernetes", "The node returns when the machine does."),
    ("administrator", "cabling in rack 12", "root", "scontrol update NodeName=NAME State=RESUME lifts it."),
)


def node_row(name: str, state: str = "idle+cloud", used: int = 0, reason: str = "none", gpus: int = PER_SET) -> dict[str, str]:
    """A row of GET /nodes/."""
    return {
        "NodeList": name,
        "StateComplete": state,
        "CPUsState": f"{used * 9}/{96 - used * 9}/0/96",
        "Gres": f"gpu:h100:{gpus}" if gpus else "(null)",
        "GresUsed": f"gpu:h100:{used}(IDX:0)" if gpus else "(null)",
        "Reason": reason,
        "User": "root(0)" if reason != "none" else "Unknown",
        "TimeStamp": str(NOW - 5400) if reason != "none" else "Unknown",
        "Extra": "(null)",
    }


def job_row(number: str, state: str = "RUNNING", user: str = "alice", **more: str) -> dict[str, str]:
    """A row of GET /queue/."""
    waits = state == "PENDING"
    return {
        "JobArrayID": number,
        "State": state,
        "NodeList": "" if waits else "gpu-0",
        "EndTime": "N/A" if waits else str(NOW + 7200),
        "TimeLimit": "1-00:00:00",
        "UserName": user,
        "Account": "research",
        "Partition": "main",
        "ReqNodes": "1",
        "Feature": "(null)",
        "tres-alloc": "cpu=12,mem=64G,node=1,billing=12,gres/gpu=4",
        "SubmitTime": str(NOW - 1800),
        "Reason": "Resources" if waits else "None",
        "Name": "train",
        **more,
    }


def slurm_node(name: str, state: str, causes: Sequence[int] = ()) -> dict[str, Any]:
    """A SlurmNode object; `causes` are places in CAUSES."""
    told = [
        {
            "name": CAUSES[at][0],
            "kind": "hardware",
            "evidence": CAUSES[at][1],
            "source": CAUSES[at][2],
            "next": CAUSES[at][3].replace("NAME", name),
        }
        for at in causes
    ]
    status = {"state": state, "machine": f"ip-10-0-4-{name.rpartition('-')[2]}", "nodeSet": name.rpartition("-")[0], "causes": told}
    return {"metadata": {"namespace": "slurm", "name": name, "labels": {"slipway.dev/cluster": "dev"}}, "status": status}


def node_set(name: str, size: int) -> dict[str, Any]:
    """A NodeSet object."""
    status = {"phase": "Ready", "why": "all nodes are as wanted", "wanted": size, "ready": size}
    spec: dict[str, Any] = {"cluster": "dev", "replicas": size, "template": {"spec": {}}}
    return {"metadata": {"namespace": "slurm", "name": name}, "spec": spec, "status": status}


def cluster(size: int) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Rows of nodes and their SlurmNodes: most work, some idle, a few out of service or off."""
    chance = random.Random(size)
    rows: list[dict[str, str]] = []
    objects: list[dict[str, Any]] = []
    for at in range(size):
        is_cpu = at >= size - size // 4
        name = f"cpu-{at - (size - size // 4)}" if is_cpu else f"gpu-{at}"
        gpus = 0 if is_cpu else PER_SET
        draw = chance.random() if at else 0.5
        used = chance.choice((8, 8, 8, 6, 4))
        if at == 1 or draw > 0.988:
            rows.append(node_row(name, "idle+cloud+drain", reason="slipway: check gpu: 12 uncorrectable errors", gpus=gpus))
            objects.append(slurm_node(name, "Drained", (0, 2) if at == 1 else (0,)))
        elif draw > 0.98:
            rows.append(node_row(name, "down+cloud+not_responding", reason="Not responding", gpus=gpus))
            objects.append(slurm_node(name, "Down", (1,)))
        elif draw > 0.972:
            rows.append(node_row(name, "mixed+cloud+drain", used, reason="cabling in rack 12", gpus=gpus))
            objects.append(slurm_node(name, "Draining", (2,)))
        elif draw > 0.92 and is_cpu:
            rows.append(node_row(name, "idle+cloud+powered_down", gpus=gpus))
        elif draw > 0.78:
            rows.append(node_row(name, gpus=gpus))
        else:
            rows.append(node_row(name, "mixed+cloud" if used < PER_SET else "allocated+cloud", used, gpus=gpus))
    return rows, [
        *objects,
        *(slurm_node(row["NodeList"], "Up") for row in rows if "mixed" in row["StateComplete"] and "drain" not in row["StateComplete"]),
    ]


def queue(size: int) -> list[dict[str, str]]:
    """Rows of jobs of several users."""
    chance = random.Random(size)
    users, names = ("alice", "bob", "carol", "dmitri", "wei"), ("pretrain-7b", "finetune", "eval-mmlu", "tokenize", "sweep-lr", "jupyter")
    rows: list[dict[str, str]] = []
    for at in range(size):
        more = {"user": chance.choice(users), "Name": chance.choice(names), "Partition": chance.choice(("main", "main", "gpu", "debug"))}
        if at % 3 == 2:
            number = f"{4200 + at}_[0-{chance.randint(1, 40)}]" if at % 4 == 0 else str(4200 + at)
            why = chance.choice(("Resources", "Priority", "QOSMaxGRESPerUser", "Dependency"))
            rows.append(job_row(number, "PENDING", Reason=why, SubmitTime=str(NOW - chance.randint(60, 50_000)), **more))
        else:
            nodes = f"gpu-[{at}-{at + 3}]" if at % 5 == 0 else f"gpu-{at}"
            rows.append(job_row(str(4200 + at), NodeList=nodes, EndTime=str(NOW + chance.randint(300, 80_000)), **more))
    return rows


def day(points: int = 1440, nodes: int = 1000, now: int = NOW) -> tuple[Point, ...]:
    """A day of use that rises and falls."""
    chance = random.Random(points)
    made: list[Point] = []
    share = 0.775
    for at in range(points):
        share = min(0.99, max(0.25, share + chance.uniform(-0.0165, 0.016)))
        busy = int(nodes * share)
        made.append((now - at * 60 - 60, busy, nodes, int(busy * 96 * 0.64), nodes * 96, int(busy * 6 * 0.85), nodes * 6))
    return tuple(reversed(made))
