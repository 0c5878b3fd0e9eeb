"""Mistakes across the parts of a stack file: one contradiction in a good one gives one fault, at its place, with what would do."""

# ruff: noqa: E501 - a table reads best with a row on a line

from typing import Any

import pytest

from configs.models.slurm_keys import RESERVED_KEYS
from configs.rules.claims import POD_VOLUMES
from configs.rules.names import PROGRAMS
from tests.support.configs.stacks import GONE, KEY
from tests.unit.configs.found_faults import faults

POOL = {"name": "more", "machine": "g6.xlarge", "max": 1, "existing": {"labels": {"a": "b"}}}
SET = {"name": "big", "pool": "workers", "size": 1}
BOB = {"name": "bob", "uid": 10002, "sshKeys": [KEY]}
NFS = {"server": "10.0.0.5", "path": "/export"}
MOUNT = {"name": "data", "mountPath": "/data", "nfs": NFS}
SERVER = {"size": "1Ti", "clusterIP": "10.96.20.49"}
TWINS = ("aape", "aask")  # mounts whose exports have one number
SERVED = {"storage.nfsServer": SERVER, "storage.home": {"nfsServer": True}}
CLAIM = {"name": "local", "mountPath": "/local", "size": "10Gi"}
DISK = {"name": "more", "check": "disk", "schedule": "0 * * * *", "nodeSets": ["cpu"]}
NCCL = {"name": "more", "check": "nccl", "schedule": "0 3 * * *", "nodeSets": ["gpu"], "settings": {"minBusBandwidthGBs": 1}}
PARTS = {"model": "h100", "count": 4, "mig": [{"profile": "1g.10gb", "count": 7}]}


TAR = {"url": "https://files.example/root.tar.zst", "sha256": "ab" * 32}


def versions(*each: dict[str, Any]) -> dict[str, Any]:
    return {"storage.root": {"versions": [*each]}}


def slurm(**settings: Any) -> dict[str, Any]:
    return {"slurm": {"settings": settings}}


def raw(*lines: str) -> dict[str, Any]:
    return {"slurm": {"raw": [*lines]}}


def claims(*given: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSets[0].volumeClaims": [*given]}


def mount(**changes: Any) -> dict[str, Any]:
    return {"storage.mounts": [{**MOUNT, **changes}]}


POOLS = [
    pytest.param({"nodePools[+]": {**POOL, "name": "workers"}}, "cluster.nodePools[1].name", "name of cluster.nodePools[0] already", id="same-pool-name"),
    pytest.param({"nodePools[0].machine": "g6.xlarge"}, "cluster.nodePools[0]", "both machine and hardware", id="machine-and-hardware"),
    pytest.param({"nodePools[0].hardware": GONE}, "cluster.nodePools[0]", "needs a machine type", id="neither-machine-nor-hardware"),
    pytest.param({"nodePools[+]": {**POOL, "machine": "g6.xlrge"}}, "cluster.nodePools[1].machine", 'Did you mean "g6.xlarge"?', id="unknown-machine"),
    pytest.param({"nodePools[+]": {**POOL, "machine": "?"}}, "cluster.nodePools[1].machine", "Spell it out under hardware", id="machine-unlike-any"),
    pytest.param({"nodePools[0].existing": GONE}, "cluster.nodePools[0]", "needs existing", id="neither-existing-nor-eks"),
    pytest.param({"nodePools[0].existing.count": 3}, "cluster.nodePools[0].existing.count", "3 is more than the pool can hold (2)", id="more-expected-than-fit"),
    pytest.param({"nodePools[0].existing.labels": {}}, "cluster.nodePools[0].existing.labels", "every node would match", id="existing-without-labels"),
    pytest.param({"gpuOperator": {"enabled": True}, "nodePools[0].hardware.gpus": GONE, "nodeSets[1].gpus": GONE, "nodeSets[1].simulatedGpus": False, "healthChecks[3]": GONE}, "cluster.gpuOperator.enabled", "no node pool has NVIDIA GPUs", id="operator-without-gpus"),
    pytest.param({"namespace": "kube-system"}, "cluster.namespace", "createNamespace: false", id="namespace-of-the-system"),
]  # fmt: skip

EKS = [
    pytest.param({"nodePools[0].existing": {"labels": {"a": "b"}}}, "cluster.nodePools[0]", "both existing and eks", id="existing-and-eks"),
    pytest.param({"nodePools[0].eks.min": 65}, "cluster.nodePools[0].eks.min", "65 is more than the pool can hold (64)", id="least-over-most"),
    pytest.param({"nodePools[0].eks.desired": 3}, "cluster.nodePools[0].eks.desired", "not between min (64) and max (64)", id="desired-below-least"),
    pytest.param({"nodePools[0].eks.capacityReservationId": GONE}, "cluster.nodePools[0].eks.capacityType", "capacity block is bought", id="block-without-id"),
    pytest.param({"nodePools[0].eks.capacityType": "SPOT"}, "cluster.nodePools[0].eks.capacityType", "spot machines use no reservation", id="spot-with-reservation"),
    pytest.param({"nodePools[1].eks.efa": True, "nodePools[1].machine": "m7i.24xlarge"}, "cluster.nodePools[1].eks.efa", "no network card that can carry EFA", id="efa-without-card"),
    pytest.param({"nodePools[1].eks.amiType": "AL2023_ARM_64_STANDARD"}, "cluster.nodePools[1].eks.amiType", "not for the processors of m7i.16xlarge (amd64)", id="arm-image-on-x86"),
    pytest.param({"nodePools[0].eks.amiType": "AL2023_x86_64_STANDARD"}, "cluster.nodePools[0].eks.amiType", "has no GPU driver", id="gpu-machine-without-driver"),
    pytest.param({"nodePools[1].eks.amiType": "AL2023_x86_64_NVIDIA"}, "cluster.nodePools[1].eks.amiType", "for NVIDIA GPUs, which m7i.16xlarge lacks", id="gpu-image-without-gpu"),
    pytest.param({"nodeSets[0].simulatedGpus": True}, "cluster.nodeSets[0].simulatedGpus", "has its own GPUs", id="simulated-gpus-in-the-cloud"),
    pytest.param({"nodeSets[0].size": 65}, "cluster.nodeSets[0].size", '65 is more than pool "h100" can hold (64). Raise nodePools[0].max or lower this.', id="size-over-pool"),
    pytest.param({"nodeSets[0].gpus.model": "h200"}, "cluster.nodeSets[0].gpus.model", '"h200" does not match: a machine of pool "h100" has "h100".', id="gpu-model-mismatch"),
    pytest.param({"nodeSets[0].gpus.vendor": "amd"}, "cluster.nodeSets[0].gpus.vendor", "has nvidia GPUs", id="gpu-vendor-mismatch"),
    pytest.param({"nodeSets[0].gpus.count": 4}, "cluster.nodeSets[0].gpus.count", "4 does not match: a machine of pool \"h100\" has 8", id="some-of-the-gpus"),
    pytest.param({"nodeSets[0].gpus.count": 16}, "cluster.nodeSets[0].gpus.count", "16 does not match", id="too-many-gpus"),
    pytest.param({"nodeSets[1].gpus": {"model": "h100", "count": 8}}, "cluster.nodeSets[1].gpus", "has no GPUs", id="gpus-on-a-cpu-machine"),
    pytest.param({"nodeSets[0].memoryMiB": 3_000_000}, "cluster.nodeSets[0].memoryMiB", "3000000 is more than a machine of pool", id="memory-over-machine"),
    pytest.param({"nodeSets[0].cpus": 193}, "cluster.nodeSets[0].cpus", "193 is more than a machine", id="cpus-over-machine"),
    pytest.param({"nodeSets[0].slurmd.MemSpecLimit": 3_000_000}, "cluster.nodeSets[0].slurmd.MemSpecLimit", "keeps all memory", id="all-memory-kept"),
    pytest.param({"storage.mounts[1].claim": GONE, "storage.mounts[1].hostPath": "/scratch"}, "cluster.storage.mounts[1].hostPath", "deletionProtection cannot keep", id="protected-host-path"),
    pytest.param({"storage.home.size": GONE}, "cluster.storage.home.size", 'storage class "efs" needs to know how much', id="class-without-size"),
    pytest.param({"login.service.sourceRanges": ["10.0.0.0/33"]}, "cluster.login.service.sourceRanges[0]", "not a network", id="bad-network"),
    pytest.param({"login.users[0].groups": ["reserch"]}, "cluster.login.users[0].groups[0]", 'Did you mean "research"?', id="unknown-group"),
    pytest.param({"login.groups[0].name": "sudo", "accounting.accounts[0].groups": ["sudo"], "login.users[0].groups": [], "login.users[1].groups": []}, "cluster.login.groups[0].name", "a group of the system", id="group-of-the-system"),
    pytest.param({"login.groups[0].gid": 27}, "cluster.login.groups[0].gid", "27 is not for people", id="gid-of-the-system"),
    pytest.param({"login.groups[0].name": "ada", "accounting.accounts[0].groups": ["ada"], "login.users[0].groups": [], "login.users[1].groups": ["ada"]}, "cluster.login.groups[0].name", "the own group of the user", id="group-named-as-a-user"),
    pytest.param({"login.groups[+]": {"name": "more", "gid": 20001}}, "cluster.login.groups[1].gid", "gid of cluster.login.groups[0] already", id="same-gid"),
    pytest.param({"login.users[0].gid": 30000, "login.users[1].gid": 30000}, "cluster.login.users[1].gid", "declared in login.groups", id="undeclared-shared-group"),
    pytest.param({"storage.root": {"versions": [{"name": "2026-10"}], "current": "2026-01"}}, "cluster.storage.root.current", 'Did you mean "2026-10"?', id="unknown-root-version"),
    pytest.param({"storage.root": {"versions": [{"name": "v1"}, {"name": "v1"}]}}, "cluster.storage.root.versions[1].name", "already", id="same-root-version"),
    pytest.param(versions({"name": "1", "image": "slurm:1", "tar": TAR}), "cluster.storage.root.versions[0]", "has an image and a tar. Keep one.", id="image-and-tar"),
    pytest.param(versions({"name": "1", "carryFrom": "1"}), "cluster.storage.root.versions[0].carryFrom", '"1" is this version itself', id="carry-from-itself"),
    pytest.param(versions({"name": "2026-10"}, {"name": "2026-11", "carryFrom": "2026-01"}), "cluster.storage.root.versions[1].carryFrom", 'no version is called "2026-01". Did you mean "2026-10"?', id="carry-from-an-unknown-version"),
    pytest.param(versions({"name": "new", "carryFrom": "old"}), "cluster.storage.root.versions[0].carryFrom", "There are none.", id="carry-from-nothing"),
    pytest.param(versions({"name": "1", "carryFrom": "2"}, {"name": "2", "carryFrom": "3"}, {"name": "3", "carryFrom": "1"}), "cluster.storage.root.versions[0].carryFrom", 'goes round in a ring: "1" from "2" from "3" from "1".', id="carry-in-a-ring"),
    pytest.param(versions({"name": "1", "carryFrom": "2"}, {"name": "2", "carryFrom": "3"}, {"name": "3", "carryFrom": "2"}), "cluster.storage.root.versions[1].carryFrom", 'ring: "2" from "3" from "2".', id="carry-into-a-ring"),
    pytest.param({"nodeSets[1].mounts": ["dataset"]}, "cluster.nodeSets[1].mounts[0]", 'Did you mean "datasets"?', id="unknown-mount"),
    pytest.param({"slurm.maxJobCount": 10_000}, "cluster.slurm.maxArraySize", "more than maxJobCount (10000)", id="array-over-jobs"),
    pytest.param({"slurm.schedulerParameters": ["bf_window 5"]}, "cluster.slurm.schedulerParameters[0]", "not one item", id="bad-scheduler-parameter"),
]  # fmt: skip

NODES = [
    pytest.param({"nodeSets[0].pool": "worker"}, "cluster.nodeSets[0].pool", 'no node pool is called "worker". Did you mean "workers"?', id="unknown-pool"),
    pytest.param({"nodeSets[+]": {**SET, "name": "gpu", "size": 0}}, "cluster.nodeSets[3].name", "name of cluster.nodeSets[1] already", id="same-set-name"),
    pytest.param({"nodeSets[+]": {**SET, "name": "big-1", "cpus": 1, "size": 0}, "partitions[0].nodeSets[+]": "big-1"}, "cluster.nodeSets[3].name", 'take "big1"', id="name-ends-like-a-node"),
    pytest.param({"nodeSets[+]": {**SET, "name": "all", "size": 0}, "partitions[0].nodeSets[+]": "all"}, "cluster.nodeSets[3].name", "a meaning of its own", id="reserved-set-name"),
    pytest.param({"nodeSets[+]": {**SET, "name": "dev-login", "size": 0}, "partitions[0].nodeSets[+]": "dev-login"}, "cluster.nodeSets[3].name", "own programs", id="name-of-a-program"),
    *(pytest.param({"nodeSets[+]": {**SET, "name": f"dev-{name}", "size": 0}, "partitions[0].nodeSets[+]": f"dev-{name}"}, "cluster.nodeSets[3].name", "own programs", id=f"name-of-{name}") for name in sorted(PROGRAMS)),
    pytest.param({"nodeSets[+]": {**SET, "size": 0}}, "cluster.nodeSets[3]", "no partition has the node set", id="set-in-no-partition"),
    pytest.param({"nodeSets[+]": {**SET, "size": 2}, "partitions[0].nodeSets[+]": "big"}, "cluster.nodePools[0].max", '"cpu" (2), "gpu" (2), "big" (2) together need 24 CPUs of 16', id="sets-over-pool"),
    pytest.param({"nodeSets[2].max": 9}, "cluster.nodePools[0].max", '"burst" (up to 9), "cpu" (2), "gpu" (2) together need 17 CPUs of 16', id="elastic-set-over-pool"),
    pytest.param({"nodeSets[0].size": 9}, "cluster.nodeSets[0].size", "9 is more than pool \"workers\" can hold (8)", id="size-over-shared-machines"),
    pytest.param({"nodeSets[0].simulatedGpus": True}, "cluster.nodeSets[0].simulatedGpus", "no GPUs to simulate", id="nothing-to-simulate"),
    pytest.param({"nodeSets[1].features": ["a", "a"]}, "cluster.nodeSets[1].features[1]", "is listed twice", id="feature-twice"),
    pytest.param({"nodeSets[0].slurmd": {"MemSpecLimt": 1}}, "cluster.nodeSets[0].slurmd.MemSpecLimt", 'Did you mean "MemSpecLimit"?', id="unknown-node-key"),
    pytest.param({"nodeSets[0].slurmd": {"RealMemory": 1}}, "cluster.nodeSets[0].slurmd.RealMemory", "rendered from other keys", id="owned-node-key"),
    pytest.param({"nodeSets[0].slurmd": {"state": "DOWN"}}, "cluster.nodeSets[0].slurmd.state", "State is rendered from other keys", id="owned-node-key-in-lower-case"),
    pytest.param({"nodeSets[0].slurmd": {"Weight": 1, "weight": 2}}, "cluster.nodeSets[0].slurmd.weight", "is Weight again", id="node-key-twice"),
    pytest.param({"nodeSets[0].resources.memoryMiB": 4096}, "cluster.nodeSets[0].resources.memoryMiB", "more than the Slurm node has (2048)", id="request-over-limit"),
    pytest.param({"nodeSets[0].resources.cpu": "9"}, "cluster.nodeSets[0].resources.cpu", "more than a machine", id="request-over-machine"),
    pytest.param({"partitions[0].nodeSets[1]": "gpus"}, "cluster.partitions[0].nodeSets[1]", 'no node set is called "gpus". Did you mean "gpu"?', id="unknown-set-in-partition"),
    pytest.param({"partitions[0].nodeSets[0]": "cpus"}, "cluster.partitions[0].nodeSets[0]", 'Did you mean "cpu"?', id="only-mention-misspelled"),
    pytest.param({"partitions[0].nodeSets[1]": "cpu"}, "cluster.partitions[0].nodeSets[1]", "twice", id="set-twice-in-partition"),
    pytest.param({"partitions[1].nodeSets": []}, "cluster.partitions[1].nodeSets", "is empty", id="empty-partition"),
    pytest.param({"partitions[1].name": "main"}, "cluster.partitions[1].name", "name of cluster.partitions[0] already", id="same-partition-name"),
    pytest.param({"partitions[1].name": "DEFAULT"}, "cluster.partitions[1].name", "a meaning of its own", id="reserved-partition-name"),
    pytest.param({"partitions[0].default": False}, "cluster.partitions", "none is the default", id="no-default-partition"),
    pytest.param({"partitions[1].default": True}, "cluster.partitions[1].default", "cluster.partitions[0] is the default already", id="two-default-partitions"),
    pytest.param({"partitions[0].defaultTime": "2-0"}, "cluster.partitions[0].defaultTime", 'longer than maxTime ("1-00:00:00")', id="default-time-over-longest"),
    pytest.param({"partitions[0].settings": {"OverSubscrib": "NO"}}, "cluster.partitions[0].settings.OverSubscrib", 'Did you mean "OverSubscribe"?', id="unknown-partition-key"),
    pytest.param({"partitions[0].settings": {"Nodes": "ALL"}}, "cluster.partitions[0].settings.Nodes", "rendered from other keys", id="owned-partition-key"),
    pytest.param({"partitions[0].settings": {"DefMemPerCPU": 1, "DefMemPerNode": 1}}, "cluster.partitions[0].settings", "exclude each other", id="two-memory-defaults"),
    pytest.param({"nodeSets[2].max": 17}, "cluster.nodeSets[2].max", "17 is more than pool \"workers\" can hold (16)", id="max-over-pool"),
    pytest.param({"partitions[0].settings": {"PowerDownOnIdle": True}}, "cluster.partitions[0].settings.PowerDownOnIdle", 'would power the nodes of "cpu" down', id="fixed-set-powered-down-when-idle"),
    pytest.param({"partitions[2].settings": {"powerdownonidle": "yes"}, "nodeSets[2].min": 1}, "cluster.partitions[2].settings.powerdownonidle", 'would power the nodes of "burst" down', id="least-nodes-powered-down-when-idle"),
]  # fmt: skip

LIFECYCLE = [
    pytest.param({"nodeSets[0].size": GONE}, "cluster.nodeSets[0].size", "neither size (fixed) nor min and max (elastic) is given", id="neither-fixed-nor-elastic"),
    pytest.param({"nodeSets[0].min": 1}, "cluster.nodeSets[0].size", "cannot be combined with min: a set is fixed (size) or elastic (min and max). Keep one.", id="size-and-min"),
    pytest.param({"nodeSets[2].size": 1}, "cluster.nodeSets[2].size", "cannot be combined with min and max", id="size-and-both-bounds"),
    pytest.param({"nodeSets[2].min": GONE}, "cluster.nodeSets[2].min", "is missing: an elastic set has min and max. 0 lets all", id="max-alone"),
    pytest.param({"nodeSets[2].max": GONE}, "cluster.nodeSets[2].max", "is missing: an elastic set has min and max. For a fixed set, say size.", id="min-alone"),
    pytest.param({"nodeSets[2].min": 3}, "cluster.nodeSets[2].min", "3 is more than max (2)", id="min-over-max"),
    pytest.param({"nodeSets[0].update": {"type": "Maintenance"}}, "cluster.nodeSets[0].update.reservation", "is missing: type Maintenance", id="maintenance-without-reservation"),
    pytest.param({"nodeSets[0].update": {"reservation": "patch"}}, "cluster.nodeSets[0].update.reservation", "RollingUpdate does not wait for a reservation", id="reservation-without-maintenance"),
    pytest.param({"nodeSets[0].remedies": {"steps": []}}, "cluster.nodeSets[0].remedies.steps", "is empty: nothing would ever be done", id="remedies-without-a-step"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "causes": []}}, "cluster.nodeSets[0].remedies.causes", "is empty: nothing would ever be acted on", id="remedies-of-nothing"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod", "RecreatePod"]}}, "cluster.nodeSets[0].remedies.steps[1]", "is listed twice", id="remedies-step-twice"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["ReplaceMachine"]}}, "cluster.nodeSets[0].remedies.machines", "is missing: ReplaceMachine needs it", id="machines-not-said"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RebootMachine"], "machines": "DeleteNode"}}, "cluster.nodeSets[0].remedies.machines", "cannot reboot", id="deleting-does-not-reboot"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RebootMachine"], "machines": "EC2"}}, "cluster.nodeSets[0].remedies.machines", "EC2 needs cluster.ec2", id="ec2-without-region"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RebootMachine"], "machines": "Webhook"}}, "cluster.nodeSets[0].remedies.webhook", "is missing", id="webhook-without-address"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RebootMachine"], "machines": "Webhook", "webhook": "https://a.example", "machineTimeoutS": 899}}, "cluster.nodeSets[0].remedies.machineTimeoutS", "899 is less than 900: a reboot may still come", id="reboot-given-up-too-early"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "webhook": "https://a.example"}}, "cluster.nodeSets[0].remedies.webhook", "is only valid with machines: Webhook", id="webhook-unused"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "confirmedBy": "dsk"}}, "cluster.nodeSets[0].remedies.confirmedBy", "no health check is called", id="confirmed-by-nobody"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["dsk"]}}, "cluster.nodeSets[0].remedies.verifiedBy[0]", "no health check is called", id="verified-by-nobody"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["gpu"]}}, "cluster.nodeSets[0].remedies.verifiedBy[0]", "does not look at", id="verified-by-a-check-elsewhere"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["disk", "disk"]}}, "cluster.nodeSets[0].remedies.verifiedBy[1]", "is listed twice", id="verified-twice"),
    pytest.param({"nodeSets[1].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["mounts"]}}, "cluster.nodeSets[1].remedies.verifiedBy[0]", "does not run as a job", id="verified-beside-jobs"),
    pytest.param({"healthChecks[+]": {**DISK, "name": "deep", "after": ["disk"]}, "nodeSets[0].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["deep", "disk"]}}, "cluster.nodeSets[0].remedies.verifiedBy[0]", "comes after disk, which is not named here before it: name disk first", id="verified-in-the-wrong-order"),
    pytest.param({"healthChecks[+]": {**DISK, "after": ["disk"]}, "nodeSets[0].checksBeforeJobs": ["more"]}, "cluster.nodeSets[0].checksBeforeJobs[0]", "comes after disk, which is not named here before it: name disk first", id="checks-before-jobs-without-what-comes-before"),
    pytest.param({"healthChecks[0].after": ["memory"], "healthChecks[+]": {**DISK, "after": ["disk"]}, "nodeSets[0].checksBeforeJobs": ["more"]}, "cluster.nodeSets[0].checksBeforeJobs[0]", "comes after memory and disk, which are not named here before it: name memory and disk first", id="checks-before-jobs-without-what-comes-before-in-turn"),
    pytest.param({"healthChecks[+]": {**DISK, "name": "launch"}}, "cluster.healthChecks[8].name", "is the check that every cluster has", id="check-with-the-name-of-a-built-in-one"),
    pytest.param({"nodeSets[2].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["disk"]}}, "cluster.nodeSets[2].remedies.verifiedBy", "forgotten when it powers down. Leave it out, and add prolog to the contexts", id="verified-in-an-elastic-set"),
    pytest.param({"nodeSets[2].checksBeforeJobs": ["disk"]}, "cluster.nodeSets[2].checksBeforeJobs", "add prolog to the contexts", id="checks-before-jobs-of-an-elastic-set"),
    pytest.param({"nodeSets[0].checksBeforeJobs": ["dsk"]}, "cluster.nodeSets[0].checksBeforeJobs[0]", "no health check is called", id="checks-before-jobs-that-are-not-there"),
    pytest.param({"nodeSets[1].checksBeforeJobs": ["mounts"]}, "cluster.nodeSets[1].checksBeforeJobs[0]", "does not run as a job", id="checks-before-jobs-beside-jobs"),
    pytest.param({"healthChecks[+]": {**DISK, "check": "mpi"}, "nodeSets[0].checksBeforeJobs": ["more"]}, "cluster.nodeSets[0].checksBeforeJobs[0]", "runs between nodes (per pair)", id="checks-before-jobs-between-nodes"),
    pytest.param({"healthChecks[+]": {**NCCL, "per": "set"}, "nodeSets[1].remedies": {"steps": ["RecreatePod"], "verifiedBy": ["more"]}}, "cluster.nodeSets[1].remedies.verifiedBy[0]", "(per set), and nodes that all wait have no good one to be compared with. Leave it out: say per: node", id="verified-between-nodes"),
    pytest.param({"nodeSets[0].machineCauses": [{"kind": "node"}]}, "cluster.nodeSets[0].machineCauses[0]", "has neither condition nor taint", id="rule-about-nothing"),
    pytest.param({"nodeSets[0].machineCauses": [{"condition": "A", "taint": "a"}]}, "cluster.nodeSets[0].machineCauses[0]", "has both condition and taint", id="rule-about-both"),
    pytest.param({"nodeSets[0].machineCauses": [{"condition": "DiskPressure"}]}, "cluster.nodeSets[0].machineCauses[0].condition", "is Kubernetes' own", id="rule-about-kubernetes-own"),
    pytest.param({"nodeSets[0].machineCauses": [{"taint": "a", "status": False}]}, "cluster.nodeSets[0].machineCauses[0].status", "is only valid with condition", id="status-of-a-taint"),
    pytest.param({"nodeSets[0].machineCauses": [{"taint": "a", "kind": "maintenance", "wish": "reboot"}]}, "cluster.nodeSets[0].machineCauses[0].wish", "reboot is for faults", id="reboot-in-maintenance"),
    pytest.param({"nodeSets[0].remedies": {"steps": ["RecreatePod"], "confirmedBy": "gpu"}}, "cluster.nodeSets[0].remedies.confirmedBy", "does not look at", id="confirmed-by-a-check-elsewhere"),
    pytest.param({"nodeSets[0].drain": {"action": "Requeue"}}, "cluster.nodeSets[0].drain.deadlineS", "is missing: Requeue needs to know", id="requeue-without-deadline"),
    pytest.param({"nodeSets[0].drain": {"action": "Cancel"}}, "cluster.nodeSets[0].drain.deadlineS", "is missing: Cancel needs to know", id="cancel-without-deadline"),
    pytest.param({"nodeSets[0].drain": {"deadlineS": 60}}, "cluster.nodeSets[0].drain.deadlineS", "is only valid with action: Requeue or Cancel", id="deadline-of-waiting"),
    pytest.param(claims(CLAIM, {**CLAIM, "mountPath": "/other"}), "cluster.nodeSets[0].volumeClaims[1].name", "name of cluster.nodeSets[0].volumeClaims[0] already", id="same-claim-name"),
    pytest.param(claims(CLAIM, {**CLAIM, "name": "other"}), "cluster.nodeSets[0].volumeClaims[1].mountPath", "is where cluster.nodeSets[0].volumeClaims[0] is", id="same-claim-path"),
    pytest.param({"nodeSets[0].scratch": {"sizeMiB": 100}, **claims({**CLAIM, "mountPath": "/scratch"})}, "cluster.nodeSets[0].scratch", "which cluster.nodeSets[0].volumeClaims[0] has already", id="two-scratches"),
    pytest.param({"storage.mounts": [{**MOUNT, "mountPath": "/scratch/x"}]}, "cluster.nodeSets[1].scratch", "which cluster.storage.mounts[0] has already", id="mount-below-scratch"),
    pytest.param({"nodeSets[0].tmp": {"sizeMiB": 10**7, "medium": "Memory"}}, "cluster.nodeSets[0].tmp.sizeMiB", "is more than a node has", id="tmp-beyond-memory"),
    pytest.param(claims({**CLAIM, "name": "spool"}), "cluster.nodeSets[0].volumeClaims[0].name", "a volume that workers have", id="claim-named-as-a-volume-of-the-pod"),
    pytest.param(claims({**CLAIM, "name": "mount-a"}), "cluster.nodeSets[0].volumeClaims[0].name", "a volume that workers have", id="claim-named-as-a-mount"),
    pytest.param(claims({**CLAIM, "mountPath": "/var/spool/slurmd"}), "cluster.nodeSets[0].volumeClaims[0].mountPath", "hide a folder of the system", id="claim-over-slurmds-own-folder"),
    pytest.param(claims({**CLAIM, "mountPath": "/home"}), "cluster.nodeSets[0].volumeClaims[0].mountPath", "where the users' homes are", id="claim-over-homes"),
    pytest.param(claims({**CLAIM, "mountPath": "/shared/x"}), "cluster.nodeSets[0].volumeClaims[0].mountPath", "where the shared root is", id="claim-over-the-shared-root"),
    pytest.param({**claims(CLAIM), **mount(mountPath="/local/data")}, "cluster.nodeSets[0].volumeClaims[0].mountPath", '(cluster.storage.mounts[0]) lie in one another', id="mount-inside-a-claim"),
]  # fmt: skip

STORAGE = [
    pytest.param({"storage.home": {}}, "cluster.storage.home", "has no source", id="no-source"),
    pytest.param({"storage.home": {"disk": {"size": "1Gi"}}}, "cluster.storage.home.disk", "holds up to 2", id="disk-for-two-machines"),
    pytest.param({"storage.home.claim": "x"}, "cluster.storage.home", "has 2 sources, hostPath and claim", id="two-sources"),
    pytest.param({"storage.home.size": "5Gi"}, "cluster.storage.home.size", "is only valid with storageClass", id="size-without-class"),
    pytest.param({"storage.home.hostPath": "/etc/home"}, "cluster.storage.home.hostPath", "is the node's own", id="host-path-of-the-system"),
    pytest.param({"storage.home.hostPath": "/var/lib/slipway/dev/shared"}, "cluster.storage.home", "same place as cluster.storage.sharedRoot", id="one-folder-twice"),
    pytest.param({"backup": {"volume": {"hostPath": "/var/lib/slipway/dev/home/x"}}}, "cluster.backup.volume", '"/var/lib/slipway/dev/home/x" lies in "/var/lib/slipway/dev/home", the place of cluster.storage.home', id="backups-inside-homes"),
    pytest.param({"storage.mounts": [{"name": "all", "mountPath": "/all", "hostPath": "/var/lib/slipway/dev"}]}, "cluster.storage.mounts[0]", '"/var/lib/slipway/dev" holds "/var/lib/slipway/dev/shared", the place of cluster.storage.sharedRoot', id="mount-of-what-holds-the-shared-root"),
    *(pytest.param({"storage.mounts": [{**MOUNT, "nfs": {**NFS, "path": first}}, {"name": "b", "mountPath": "/b", "nfs": {"server": server, "path": other}}]}, "cluster.storage.mounts[1]", part, id=f"nfs-{name}") for name, first, server, other, part in (
        ("with-a-slash-behind", "/e", NFS["server"], "/e/", "is the same place as cluster.storage.mounts[0]"),
        ("with-two-slashes", "/e/f", NFS["server"], "//e//f", "is the same place as cluster.storage.mounts[0]"),
        ("inside-the-other", "/e", NFS["server"], "/e/f/", '"/e/f" lies in "/e"'),
        ("of-all-exports", "/e", NFS["server"], "/", '"/" holds "/e"'),
    )),
    pytest.param(mount(mountPath="/var/spool/slipway/tmp"), "cluster.storage.mounts[0].mountPath", "hide a folder of the system", id="mount-over-tmp-of-jobs"),
    pytest.param(mount(mountPath="/etc/x"), "cluster.storage.mounts[0].mountPath", "hide a folder of the system", id="mount-over-the-system"),
    pytest.param(mount(mountPath="/home/data"), "cluster.storage.mounts[0].mountPath", "where the users' homes are", id="mount-over-homes"),
    pytest.param(mount(mountPath="/shared"), "cluster.storage.mounts[0].mountPath", "where the shared root is", id="mount-over-the-shared-root"),
    pytest.param({"storage.mounts": [MOUNT, {**MOUNT, "mountPath": "/b", "nfs": {**NFS, "path": "/b"}}]}, "cluster.storage.mounts[1].name", "name of cluster.storage.mounts[0] already", id="same-mount-name"),
    pytest.param({"storage.mounts": [MOUNT, {"name": "b", "mountPath": "/data", "claim": "b"}]}, "cluster.storage.mounts[1].mountPath", "is where cluster.storage.mounts[0] is", id="same-mount-path"),
    pytest.param({"storage.mounts": [MOUNT, {"name": "b", "mountPath": "/data/b", "claim": "b"}]}, "cluster.storage.mounts[1].mountPath", "lie in one another", id="mount-in-a-mount"),
    pytest.param({"storage.home": {"nfsServer": True}}, "cluster.storage.home.nfsServer", "no server is declared. Say storage.nfsServer: {size: 1Ti, clusterIP: 10.96.20.49}", id="volume-on-no-server"),
    pytest.param({"storage.nfsServer": SERVER}, "cluster.storage.nfsServer", "no volume is on it. Say nfsServer: true as the source of one", id="server-without-a-volume"),
    pytest.param({**SERVED, "storage.home.claim": "x"}, "cluster.storage.home", "has 2 sources, claim and nfsServer", id="claim-and-server"),
    pytest.param({**SERVED, "storage.home.size": "5Gi"}, "cluster.storage.home.size", "a volume from nfsServer has its own size", id="size-of-a-volume-on-the-server"),
    pytest.param({**SERVED, "storage.sharedRoot": {"nfsServer": True}, "storage.home": {"nfsServer": False}}, "cluster.storage.home", "has no source", id="not-on-the-server"),
    pytest.param({**SERVED, "storage.nfsServer.options": ["hard", "nfsvers=3"]}, "cluster.storage.nfsServer.options[1]", '"nfsvers=3" is not for this server, which speaks 4.1 and 4.2', id="older-protocol"),
    pytest.param({**SERVED, "backup": {"volume": {"nfsServer": True}}}, "cluster.backup.volume.nfsServer", "Take another source", id="backup-on-the-server"),
    pytest.param({**SERVED, "login.ldap": {"uris": ["ldaps://x"], "baseDn": "dc=x"}}, "cluster.storage.home.nfsServer", "homes of login.users only", id="homes-of-ldap-on-the-server"),
    pytest.param({**SERVED, "storage.nfsServer.options": ["vers=4.0"]}, "cluster.storage.nfsServer.options[0]", '"vers=4.0" is not for this server', id="older-minor-protocol"),
    pytest.param({**SERVED, "storage.mounts": [{"name": name, "mountPath": f"/{name}", "nfsServer": True} for name in TWINS]}, "cluster.storage.mounts[1].name", "would have the number of cluster.storage.mounts[0]", id="two-exports-of-one-number"),
]  # fmt: skip

ACCESS = [
    pytest.param({"login.users[+]": {**BOB, "name": "alice"}}, "cluster.login.users[2].name", "name of cluster.login.users[0] already", id="same-user-name"),
    pytest.param({"login.users[+]": {**BOB, "uid": 10001, "gid": 10002}}, "cluster.login.users[2].uid", "uid of cluster.login.users[0] already", id="same-uid"),
    pytest.param({"login.users[0].uid": 500}, "cluster.login.users[0].uid", "500 is not for people", id="uid-of-the-system"),
    pytest.param({"login.users[0].uid": 65534}, "cluster.login.users[0].uid", "65534 is the number of the system", id="uid-of-nobody"),
    pytest.param({"storage.root": GONE}, "cluster.login.users[0].admin", "wants storage.root", id="admin-without-root"),
    pytest.param({"storage.root": GONE, "login.users[0].admin": GONE, "login.groups[+]": {"name": "ops", "gid": 20002}, "login.adminGroups": ["ops"]}, "cluster.login.adminGroups", "wants storage.root", id="admin-group-without-root"),
    pytest.param({"login.groups[+]": {"name": "ops", "gid": 20002}, "login.adminGroups": ["opps"]}, "cluster.login.adminGroups[0]", 'Did you mean "ops"?', id="unknown-admin-group"),
    pytest.param({"login.users[0].name": "slurm"}, "cluster.login.users[0].name", "a user of the system", id="user-slurm"),
    pytest.param({"login.users[0].name": "root"}, "cluster.login.users[0].name", "a user of the system", id="user-root"),
    pytest.param({"login.users[0].sshKeys": []}, "cluster.login.users[0]", "could not log in", id="user-without-keys"),
    pytest.param({"login.users[0].sshKeys": ["alice@example.com"]}, "cluster.login.users[0].sshKeys[0]", "is not a public key", id="no-key"),
    pytest.param({"login.users[0].sshKeys": [KEY[:60]]}, "cluster.login.users[0].sshKeys[0]", "cut short", id="half-a-key"),
    pytest.param({"login.users[0].sshKeys": [KEY.replace("ssh-ed25519", "ssh-rsa")]}, "cluster.login.users[0].sshKeys[0]", "cut short or altered", id="key-of-another-type"),
    pytest.param({"login.users[0].sshKeys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}, "cluster.login.users[0].sshKeys[0]", "is a private key", id="private-key"),
    pytest.param({"login.users[0].sshKeyFiles": ["keys/no.pub"]}, "cluster.login.users[0].sshKeyFiles[0]", "`make up` makes it for the dev stack; else: ssh-keygen -t ed25519 -f keys/no", id="missing-key-file"),
    pytest.param({"login.service.nodePort": 22}, "cluster.login.service.nodePort", "22 is outside Kubernetes' node ports (30000 to 32767)", id="node-port-out-of-range"),
    pytest.param({"login.service.type": "ClusterIP"}, "cluster.login.service.nodePort", "a ClusterIP service has no node port", id="node-port-of-cluster-ip"),
    pytest.param({"login.service.sourceRanges": ["10.0.0.0/8"]}, "cluster.login.service.sourceRanges", "works with type: LoadBalancer only", id="ranges-without-balancer"),
    pytest.param({"login.limits.tasks": 49}, "cluster.login.limits.tasks", "49 is too few for a session and its programs. Give at least 50.", id="too-few-tasks"),
    pytest.param({"login.limits.memoryMiB": 127}, "cluster.login.limits.memoryMiB", "127 MiB is too little", id="too-little-memory-for-a-login"),
    pytest.param({"login.limits.cpus": 0}, "cluster.login.limits.cpus", "0 is less than 1", id="no-cpu-for-a-login"),
    pytest.param({"login.drainGraceS": 604801}, "cluster.login.drainGraceS", "604801 is more than 604800", id="grace-of-more-than-a-week"),
    pytest.param({"login.banner": "red \x1b[31m"}, "cluster.login.banner", "holds a control character", id="banner-that-drives-terminals"),
    pytest.param({"login.banner": "x" * 4001}, "cluster.login.banner", "has 4001 characters; 4000 are allowed", id="banner-of-pages"),
]  # fmt: skip

KERNEL: dict[str, Any] = {**DISK, "check": "kernel", "contexts": ["interval"]}
KERNEL.pop("schedule")

HEALTH = [
    pytest.param({"healthChecks[+]": {**DISK, "per": "pair"}}, "cluster.healthChecks[8].per", "the disk check looks at each node by itself", id="pairs-of-a-disk-check"),
    pytest.param({"healthChecks[+]": {**DISK, "folders": ["/data"]}}, "cluster.healthChecks[8].folders", "the disk check has no folders", id="folders-of-a-disk-check"),
    pytest.param({"healthChecks[5].per": "set"}, "cluster.healthChecks[5].settings.minBandwidthMBs", "has nothing to compare with", id="set-without-a-limit"),
    pytest.param({"healthChecks[5].settings.rounds": 0}, "cluster.healthChecks[5].settings.rounds", "0 would test nothing", id="no-rounds"),
    pytest.param({"healthChecks[6].timeoutS": 1}, "cluster.healthChecks[6].timeoutS", "1 is not more than seconds (1)", id="stream-that-could-never-end"),
    pytest.param({"healthChecks[5].contexts": ["job", "interval"]}, "cluster.healthChecks[5].contexts[1]", "the mpi check does not run in the context interval", id="mpi-beside-jobs"),
    pytest.param({"healthChecks[4].after": ["disk"]}, "cluster.healthChecks[4].after", "for the context job alone", id="order-beside-jobs"),
    pytest.param({"healthChecks[0].after": ["gpus"]}, "cluster.healthChecks[0].after[0]", 'Did you mean "gpu"?', id="after-nothing"),
    pytest.param({"healthChecks[0].after": ["gpu"]}, "cluster.healthChecks[0].after[0]", 'does not look at the node set "cpu"', id="after-a-check-of-others"),
    pytest.param({"healthChecks[0].budgetNodeMinutes": 60, "accounting": {"enabled": False}}, "cluster.healthChecks[0].budgetNodeMinutes", "needs accounting", id="budget-that-nobody-counts"),
    pytest.param({"partitions[2].name": "slipway-checks"}, "cluster.partitions[2].name", "is the partition of health checks' jobs", id="partition-of-the-checks"),
    pytest.param({"healthChecks[+]": {**DISK, "name": "disk"}}, "cluster.healthChecks[8].name", "name of cluster.healthChecks[0] already", id="same-check-name"),
    pytest.param({"healthChecks[+]": {**DISK, "nodeSets": ["cpus"]}}, "cluster.healthChecks[8].nodeSets[0]", 'Did you mean "cpu"?', id="unknown-set-in-check"),
    pytest.param({"healthChecks[+]": {**DISK, "nodeSets": []}}, "cluster.healthChecks[8].nodeSets", "would look at nothing", id="check-of-nothing"),
    pytest.param({"healthChecks[3].nodeSets": ["gpu", "cpu"]}, "cluster.healthChecks[3].nodeSets[1]", 'the node set "cpu" has no GPUs to check', id="gpu-check-without-gpus"),
    pytest.param({"healthChecks[+]": {**DISK, "check": "command"}}, "cluster.healthChecks[8].command", "give the command as a list of words", id="check-without-its-command"),
    pytest.param({"healthChecks[+]": {**DISK, "command": ["/opt/fabric"]}}, "cluster.healthChecks[8].command", "the disk check runs no command", id="command-of-another-check"),
    pytest.param({"healthChecks[+]": {**DISK, "check": "mounts", "settings": {"maxAnswerS": 60}}}, "cluster.healthChecks[8].timeoutS", "60 is not more than maxAnswerS (60)", id="answer-that-could-never-be-late"),
    pytest.param({"healthChecks[+]": {**DISK, "check": "processes", "settings": {"stuckS": 60}}}, "cluster.healthChecks[8].timeoutS", "60 is not more than stuckS (60)", id="check-that-could-never-end"),
    pytest.param({"healthChecks[4].contexts": ["interval", "interval"]}, "cluster.healthChecks[4].contexts[1]", "names interval again", id="same-context"),
    pytest.param({"healthChecks[4].contexts": []}, "cluster.healthChecks[4].contexts", "the check would never run", id="check-without-a-context"),
    pytest.param({"healthChecks[4].contexts": ["job"]}, "cluster.healthChecks[4].schedule", "with the context job, give cron's five fields", id="job-without-a-schedule"),
    pytest.param({"healthChecks[4].schedule": "* * * * *"}, "cluster.healthChecks[4].schedule", "for the context job alone", id="schedule-without-a-job"),
    pytest.param({"healthChecks[4].check": "kernel", "healthChecks[4].contexts": ["job"], "healthChecks[4].schedule": "0 * * * *"}, "cluster.healthChecks[4].contexts[0]", "the kernel check does not run in the context job", id="kernels-log-as-a-job"),
    pytest.param({"healthChecks[+]": {**DISK, "otherDrivers": "drain"}}, "cluster.healthChecks[8].otherDrivers", "the disk check reads no driver", id="drivers-of-a-disk-check"),
    pytest.param({"healthChecks[4].nodeStates": []}, "cluster.healthChecks[4].nodeStates", "the check would look at nothing", id="nodes-in-no-state"),
    pytest.param({"healthChecks[4].nodeStates": ["idle", "idle"]}, "cluster.healthChecks[4].nodeStates[1]", "is listed twice", id="same-state"),
    pytest.param({"healthChecks[0].nodeStates": ["idle"]}, "cluster.healthChecks[0].nodeStates", "for the context interval alone", id="states-of-a-job"),
    pytest.param({"healthChecks[4].nodeStates": ["allocated"]}, "cluster.healthChecks[4].nodeStates", "nothing would ever look at it again", id="drained-nodes-unseen"),
    pytest.param({"healthChecks[+]": {**DISK, "platforms": ["none", "none"]}}, "cluster.healthChecks[8].platforms[1]", "is listed twice", id="same-platform"),
    pytest.param({"healthChecks[+]": {**DISK, "platforms": ["nvidia"]}}, "cluster.healthChecks[8].platforms", "fits none of the check's node sets, so it would look at nothing. They have: none", id="platforms-that-fit-nowhere"),
    pytest.param({"healthChecks[3].nodeSets": ["gpu", "cpu"], "healthChecks[3].platforms": ["amd"]}, "cluster.healthChecks[3].platforms", "They have: none, nvidia", id="other-platforms"),
    pytest.param({"healthChecks[0].platforms": ["none"], "healthChecks[+]": {**DISK, "nodeSets": ["cpu", "gpu"], "after": ["disk"]}}, "cluster.healthChecks[8].after[0]", 'does not look at the node set "gpu"', id="after-a-check-of-other-platforms"),
    pytest.param({"healthChecks[0].platforms": ["none"], "nodeSets[1].checksBeforeJobs": ["disk"]}, "cluster.nodeSets[1].checksBeforeJobs[0]", "Add nvidia there", id="check-before-jobs-of-other-platforms"),
    pytest.param({"healthChecks[0].wish": "none", "nodeSets[0].checksBeforeJobs": ["disk"]}, "cluster.nodeSets[0].checksBeforeJobs[0]", "has the wish none", id="check-before-jobs-that-holds-no-node"),
    pytest.param({"healthChecks[0].wish": "none", "nodeSets[0].remedies": {"steps": ["RecreatePod"], "confirmedBy": "disk"}}, "cluster.nodeSets[0].remedies.confirmedBy", "has the wish none", id="confirmed-by-what-starts-no-repair"),
    pytest.param({"healthChecks[+]": {**DISK, "cause": "maintenance", "wish": "reboot"}}, "cluster.healthChecks[8].wish", "reboot is for faults", id="maintenance-that-wishes-a-reboot"),
    pytest.param({"healthChecks[3].wish": "none", "healthChecks[3].otherDrivers": "drain"}, "cluster.healthChecks[3].otherDrivers", "contradicts wish: none", id="drivers-that-drain-without-a-wish"),
    pytest.param({"healthChecks[4].passes": 0}, "cluster.healthChecks[4].passes", "0 is less than 1", id="no-passes"),
    pytest.param({"healthChecks[2].contexts": ["job", "prolog"]}, "cluster.healthChecks[2].contexts[1]", "the clock check does not run in the context prolog", id="clock-in-a-prolog"),
    pytest.param({"slurm.settings": {"HealthCheckInterval": 0}}, "cluster.slurm.settings.HealthCheckInterval", "the health checks with the context interval would never run", id="interval-of-none"),
    pytest.param({"slurm.settings": {"HealthCheckInterval": 20}}, "cluster.slurm.settings.HealthCheckInterval", "20 is not more than HealthCheckTimeout (45)", id="interval-shorter-than-its-checks"),
    pytest.param({"slurm.settings": {"HealthCheckTimeout": 60}}, "cluster.slurm.settings.HealthCheckTimeout", "60 is not less than HealthCheckInterval (60)", id="checks-longer-than-their-interval"),
    pytest.param({"healthChecks[+]": {**DISK, "schedule": "every day"}}, "cluster.healthChecks[8].schedule", "five fields", id="schedule-in-words"),
    pytest.param({"healthChecks[+]": {**DISK, "schedule": "60 * * * *"}}, "cluster.healthChecks[8].schedule", 'the minute "60"', id="minute-60"),
    pytest.param({"healthChecks[+]": {**DISK, "schedule": "*/0 * * * *"}}, "cluster.healthChecks[8].schedule", 'the minute "*/0"', id="step-of-none"),
    pytest.param({"healthChecks[+]": {**DISK, "schedule": "0 9-7 * * *"}}, "cluster.healthChecks[8].schedule", 'the hour "9-7"', id="range-backwards"),
    pytest.param({"healthChecks[+]": {**DISK, "schedule": "0 0 * * fry"}}, "cluster.healthChecks[8].schedule", 'the day of the week "fry"', id="no-such-day"),
    pytest.param({"healthChecks[+]": {**DISK, "patterns": {"x": "y"}}}, "cluster.healthChecks[8].patterns", "the disk check does not read the kernel's log", id="patterns-of-a-disk-check"),
    pytest.param({"healthChecks[+]": {**DISK, "xids": [63]}}, "cluster.healthChecks[8].xids", "the disk check does not read the kernel's log", id="xids-of-a-disk-check"),
    pytest.param({"healthChecks[+]": {**KERNEL, "xids": [63, 94], "ignoredXids": [79, 94]}}, "cluster.healthChecks[8].ignoredXids[1]", "94 is in xids, too", id="xid-that-counts-and-does-not"),
    pytest.param({"healthChecks[+]": {**KERNEL, "xids": [0]}}, "cluster.healthChecks[8].xids[0]", "0 is less than 1", id="xid-0"),
    pytest.param({"healthChecks[+]": {**KERNEL, "patterns": {"Hot": "x"}}}, "cluster.healthChecks[8].patterns", '"Hot" is not a DNS label', id="name-of-a-pattern"),
    pytest.param({"healthChecks[+]": {**KERNEL, "patterns": {"x": "(half"}}}, "cluster.healthChecks[8].patterns.x", "is not a regular expression of Python's: missing )", id="half-a-pattern"),
    pytest.param({"healthChecks[+]": {**KERNEL, "patterns": {"x": "(a+)+b"}}}, "cluster.healthChecks[8].patterns.x", "repeats a group, which may take for ever", id="pattern-that-takes-for-ever"),
    pytest.param({"healthChecks[+]": {**KERNEL, "patterns": {"x": "a*"}}}, "cluster.healthChecks[8].patterns.x", "matches every line", id="pattern-of-every-line"),
    pytest.param({"healthChecks[+]": {**KERNEL, "patterns": {"x": "a" * 201}}}, "cluster.healthChecks[8].patterns.x", "has 201 characters; 200 are allowed", id="pattern-of-pages"),
    pytest.param({"healthChecks[+]": {**NCCL, "nodeSets": ["cpu"]}}, "cluster.healthChecks[8].nodeSets[0]", 'the node set "cpu" has no GPUs to check', id="nccl-without-gpus"),
    pytest.param({"healthChecks[+]": {**NCCL, "settings": {}}}, "cluster.healthChecks[8].settings.minBusBandwidthGBs", "the machine catalogue does not tell", id="nccl-on-unknown-hardware"),
    pytest.param({"healthChecks[+]": {**NCCL, "per": "set", "settings": {"minBusBandwidthGBs": 0}}}, "cluster.healthChecks[8].settings.minBusBandwidthGBs", "nothing to compare with", id="nccl-over-all-without-a-limit"),
    pytest.param({"healthChecks[+]": {**NCCL, "settings": {"messageMiB": 0, "minBusBandwidthGBs": 1}}}, "cluster.healthChecks[8].settings.messageMiB", "0 would test nothing", id="nccl-of-nothing"),
    pytest.param({"healthChecks[+]": {**NCCL, "contexts": ["job", "prolog"]}}, "cluster.healthChecks[8].contexts[1]", "the nccl check does not run in the context prolog", id="nccl-in-a-prolog"),
    pytest.param({"healthChecks[+]": NCCL, "nodeSets[1].gpus": PARTS}, "cluster.healthChecks[8].nodeSets[0]", "has GPUs in parts (mig)", id="nccl-on-parts"),
    pytest.param({"healthChecks[+]": {**NCCL, "check": "burn", "settings": {}, "timeoutS": 120}}, "cluster.healthChecks[8].timeoutS", "120 is not more than seconds (60) and the 60 s beside", id="burn-that-could-never-end"),
    pytest.param({"healthChecks[+]": {**NCCL, "check": "burn", "settings": {}, "timeoutS": 180, "nodeSets": ["cpu"]}}, "cluster.healthChecks[8].nodeSets[0]", "has no GPUs to check", id="burn-without-gpus"),
    pytest.param({"healthChecks[+]": {**NCCL, "check": "dcgm", "settings": {"level": 5}}}, "cluster.healthChecks[8].settings.level", "5 is not a level of dcgmi diag", id="level-5"),
    pytest.param({"healthChecks[+]": {**NCCL, "check": "dcgm", "settings": {"level": 3}, "timeoutS": 600}}, "cluster.healthChecks[8].timeoutS", "level 3 may take 1200 s", id="level-without-its-time"),
    pytest.param({"healthChecks[+]": {**NCCL, "check": "dcgm", "settings": {}, "timeoutS": 600, "nodeSets": ["cpu"]}}, "cluster.healthChecks[8].nodeSets[0]", "has no GPUs to check", id="dcgm-without-gpus"),
    pytest.param({"healthChecks[+]": {**DISK, "check": "ib", "settings": {}, "per": "set"}}, "cluster.healthChecks[8].per", "the ib check does not run per set. It can run per: pair.", id="ib-over-all"),
    pytest.param({"healthChecks[+]": {**DISK, "check": "ib", "settings": {"minShareOfRatePercent": 100}}}, "cluster.healthChecks[8].settings.minShareOfRatePercent", "100 would drain every node", id="ib-at-the-whole-rate"),
    pytest.param({"healthChecks[5].per": "node"}, "cluster.healthChecks[5].per", "the mpi check does not run per node. It can run per: pair, set.", id="mpi-of-one-node"),
    pytest.param({"healthChecks[+]": {**DISK, "settings": {"minFreMiB": 1}}}, "cluster.healthChecks[8].settings.minFreMiB", 'Did you mean "minFreeMiB"?', id="unknown-limit"),
    pytest.param({"healthChecks[+]": {**DISK, "settings": {"minFreePercent": 101}}}, "cluster.healthChecks[8].settings.minFreePercent", "more than 100 percent", id="over-100-percent"),
]  # fmt: skip

NAMES = [
    *(pytest.param(claims({**CLAIM, "name": name}), "cluster.nodeSets[0].volumeClaims[0].name", "name of a volume that workers have", id=f"claim-{name}") for name in sorted(POD_VOLUMES)),
    *(pytest.param({f"login.users[0].{key}": number}, f"cluster.login.users[0].{key}", f"{number} is the number of the system's own user", id=f"{key}-{number}") for key in ("uid", "gid") for number in (64030, 65534, 401)),
    pytest.param({"login.groups[+]": {"name": "hpc", "gid": 64030}}, "cluster.login.groups[1].gid", "64030 is the number of the system's own user slurm", id="gid-of-slurm"),
    pytest.param({"nodeSets[+]": {**SET, "name": "c", "size": 0, "volumeClaims": [{**CLAIM, "name": "a-b"}]}, "nodeSets[0].name": "b-c", "nodeSets[0].volumeClaims": [{**CLAIM, "name": "a"}], "partitions[0].nodeSets": ["b-c", "gpu", "c"], "healthChecks": []}, "cluster.nodeSets[3].volumeClaims[0].name", "would be called a-b-c-0, as that of cluster.nodeSets[0].volumeClaims[0]", id="claims-of-two-sets"),
    pytest.param({"nodeSets[+]": {**SET, "name": "slurmctld", "size": 0, "volumeClaims": [{**CLAIM, "name": "state-dev"}]}, "partitions[0].nodeSets[+]": "slurmctld"}, "cluster.nodeSets[3].volumeClaims[0].name", "state-dev-slurmctld-0, which is the name of the disk of slurmctld", id="claim-and-disk-of-slurmctld"),
    pytest.param({"nodeSets[+]": {**SET, "name": "x", "size": 0, "mounts": [], "volumeClaims": [{**CLAIM, "name": "dev-mount"}]}, "partitions[0].nodeSets[+]": "x", "storage.mounts": [{**MOUNT, "name": "x-1"}]}, "cluster.nodeSets[3].volumeClaims[0].name", "dev-mount-x-1, which is the name of the volume mount-x-1", id="claim-and-mount"),
    pytest.param({"nodeSets[0].volumeClaims": [CLAIM], "storage.home": {"claim": "local-cpu-1"}}, "cluster.storage.home.claim", '"local-cpu-1" would be the disk of a node, by cluster.nodeSets[0].volumeClaims[0].name', id="home-on-the-disk-of-a-node"),
    *(pytest.param({"backup": {"volume": {"claim": claim}}, **more}, "cluster.backup.volume.claim", part, id=f"backups-on-{name}") for name, claim, more, part in (
        ("the-disk-of-the-database", "data-dev-mariadb-0", {}, "is the disk of mariadb"),
        ("the-disk-of-slurmctld", "state-dev-slurmctld-0", {}, "is the disk of slurmctld"),
        ("the-volume-of-homes", "dev-home", {}, "is the volume home"),
        ("the-disk-of-a-node", "local-cpu-1", {"nodeSets[0].volumeClaims": [CLAIM]}, "would be the disk of a node"),
    )),
    pytest.param({"accounting": {"archive": {"volume": {"claim": "dev-home"}, "records": ["jobs"]}, "purge": {"jobs": "24month"}}}, "cluster.accounting.archive.volume.claim", "is the volume home", id="archive-on-the-volume-of-homes"),
    pytest.param({"storage.home": {"claim": "data-dev-mariadb-0"}}, "cluster.storage.home.claim", "is the disk of mariadb", id="home-on-the-disk-of-the-database"),
]  # fmt: skip

SLURM = [
    *(pytest.param(slurm(**{key: "1"}), f"cluster.slurm.settings.{key}", f"Slipway itself depends on {key} as it is: {why}", id=f"{key}-as-a-setting") for key, why in RESERVED_KEYS.items()),
    *(pytest.param(raw(f"{key.lower()} = 1"), "cluster.slurm.raw[0]", f"Slipway itself depends on {key} as it is: {why}", id=f"{key}-as-a-raw-line") for key, why in RESERVED_KEYS.items()),
    pytest.param(slurm(MinJobAge="soon"), "cluster.slurm.settings.MinJobAge", '"soon" is nothing that Slurm reads as MinJobAge. Give a whole number from 0 to 4294967295, without a unit (or INFINITE).', id="word-as-a-number"),
    pytest.param(slurm(waittime=65536), "cluster.slurm.settings.waittime", "Give a whole number from 0 to 65535", id="number-of-seventeen-bits"),
    pytest.param(slurm(KillOnBadExit=True), "cluster.slurm.settings.KillOnBadExit", '"yes" is nothing that Slurm reads as KillOnBadExit. Give a whole number from 0 to 65535, without a unit (or INFINITE). For yes that is 1.', id="truth-as-a-number"),
    pytest.param(slurm(TrackWCKey="maybe"), "cluster.slurm.settings.TrackWCKey", "Give yes or no.", id="word-as-a-truth"),
    pytest.param(slurm(PriorityMaxAge="a week"), "cluster.slurm.settings.PriorityMaxAge", "Give a time such as 90 (minutes) or 7-12:00:00 (or INFINITE).", id="words-as-a-time"),
    pytest.param(raw("MinJobAge=5m"), "cluster.slurm.raw[0]", '"5m" is nothing that Slurm reads as MinJobAge', id="raw-number-with-a-unit"),
    pytest.param(raw("NodeName=old-1 RealMemory=2G"), "cluster.slurm.raw[0]", '"2G" is nothing that Slurm reads as RealMemory', id="raw-node-with-a-unit"),
    pytest.param(raw("PartitionName=old Nodes=ALL hidden=maybe"), "cluster.slurm.raw[0]", '"maybe" is nothing that Slurm reads as Hidden', id="raw-partition-with-a-word"),
    pytest.param({"nodeSets[0].slurmd": {"Weight": "heavy"}}, "cluster.nodeSets[0].slurmd.Weight", '"heavy" is nothing that Slurm reads as Weight', id="word-as-a-weight"),
    pytest.param({"nodeSets[0].slurmd": {"MemSpecLimit": "1G"}}, "cluster.nodeSets[0].slurmd.MemSpecLimit", '"1G" is nothing that Slurm reads as MemSpecLimit. Give a whole number from 0 to 18446744073709551615, without a unit', id="memory-with-a-unit"),
    pytest.param({"partitions[0].settings": {"MaxNodes": "two"}}, "cluster.partitions[0].settings.MaxNodes", '"two" is nothing that Slurm reads as MaxNodes', id="nodes-in-words"),
    pytest.param({"partitions[0].settings": {"Hidden": "maybe"}}, "cluster.partitions[0].settings.Hidden", '"maybe" is nothing that Slurm reads as Hidden. Give yes or no.', id="partition-that-may-be-hidden"),
    pytest.param(slurm(PriorityDecayHalfLive="1-0"), "cluster.slurm.settings.PriorityDecayHalfLive", 'Did you mean "PriorityDecayHalfLife"?', id="unknown-setting"),
    pytest.param(slurm(Zqx="1"), "cluster.slurm.settings.Zqx", "See slurm.conf(5).", id="setting-unlike-any"),
    pytest.param(slurm(SlurmUser="root"), "cluster.slurm.settings.SlurmUser", "Slipway itself depends on SlurmUser=slurm", id="owned-setting"),
    pytest.param(slurm(PropagateResourceLimits="ALL", propagateresourcelimitsexcept="AS"), "cluster.slurm.settings.propagateresourcelimitsexcept", "Leave one of the two out", id="limits-that-jobs-inherit-and-do-not"),
    pytest.param(slurm(slurmuser="root"), "cluster.slurm.settings.slurmuser", "depends on SlurmUser=slurm", id="owned-setting-in-lower-case"),
    pytest.param(slurm(SchedulerParameters="bf_continue"), "cluster.slurm.settings.SchedulerParameters", "Use slurm.schedulerParameters.", id="setting-with-a-key-of-its-own"),
    pytest.param(slurm(SuspendTime="INFINITE"), "cluster.slurm.settings.SuspendTime", "Use slurm.suspendTimeS.", id="suspend-time-as-a-setting"),
    pytest.param(slurm(PrologSlurmctld="/x"), "cluster.slurm.settings.PrologSlurmctld", "Slipway itself depends on PrologSlurmctld=", id="own-prolog-against-that-of-elastic-sets"),
    pytest.param(slurm(SuspendExcNodes="gpu-0"), "cluster.slurm.settings.SuspendExcNodes", "depends on SuspendExcNodes=cpu-[0-1],gpu-[0-1]", id="own-kept-nodes"),
    pytest.param(slurm(PrologTimeout=600), "cluster.slurm.settings.PrologTimeout", "PrologTimeout=600 would end PrologSlurmctld, which waits for elastic nodes for up to 600 s", id="prolog-limit-below-resume-timeout"),
    pytest.param(raw("PrologEpilogTimeout=30"), "cluster.slurm.raw[0]", "would end PrologSlurmctld", id="raw-prolog-limit"),
    pytest.param(raw("ResumeTimeout=5"), "cluster.slurm.raw[0]", "contradicts ResumeTimeout=600, which is rendered from the rest of this file. Use slurm.resumeTimeoutS.", id="raw-against-power-saving"),
    pytest.param(raw("PartitionName=more Nodes=ALL SuspendTime=INFINITE"), "cluster.slurm.raw[0]", "SuspendTime counts for the nodes of elastic sets", id="raw-partition-that-keeps-elastic-nodes"),
    pytest.param({"slurm": {"suspendTimeoutS": 59}}, "cluster.slurm.suspendTimeoutS", "59 is less than 60", id="no-time-for-a-pod-to-go"),
    pytest.param(slurm(NodeName="x"), "cluster.slurm.settings.NodeName", "Use nodeSets.", id="node-as-a-setting"),
    pytest.param(slurm(MinJobAge=1, minjobage=2), "cluster.slurm.settings.minjobage", "is MinJobAge again", id="setting-twice"),
    pytest.param(slurm(JobCompPass="x"), "cluster.slurm.settings.JobCompPass", "it must not contain a password", id="password"),
    pytest.param(raw("SlurmUser=root"), "cluster.slurm.raw[0]", "contradicts SlurmUser=slurm", id="raw-against-a-rendered-line"),
    pytest.param(raw("SLURMUSER = root"), "cluster.slurm.raw[0]", "contradicts SlurmUser=slurm", id="raw-in-capitals-with-spaces"),
    pytest.param(raw("MinJobAge=9 SlurmUser=root"), "cluster.slurm.raw[0]", "Slurm reads one key a line here", id="raw-with-a-second-key"),
    pytest.param(raw("MinJobAge=9 NodeName=gpu-0"), "cluster.slurm.raw[0]", "Slurm reads one key a line here", id="raw-node-behind-another-key"),
    *(pytest.param(raw(line), "cluster.slurm.raw[0]", "contradicts gpu-[0-1], the nodes of node set", id=f"raw-node-of-a-set-as-{name}") for name, line in {
        "one": "NodeName=gpu-0", "quoted": 'NodeName = "gpu-0"', "small": "nodename=gpu-0 cpus=1", "added-to": "NodeName+=gpu-1 CPUs=1", "in-a-list": "NodeName=old-1,gpu-0",
        "in-a-range-of-others": "NodeName=old-[1-2],gpu-[1-9]", "later-growth": "NodeName=gpu-77", "in-capitals": "NodeName=GPU-0", "in-part": "NodeName=gpu-1[0-3]",
        "host-name": "NodeName=old NodeHostname=gpu-0", "address": "NodeName=old NodeAddr=gpu-0", "before-a-comment": "NodeName=gpu-0#x", "down": "DownNodes=gpu-0 State=DOWN",
        "node-set": "NodeSet=gpu-0 Nodes=old-[1-2]",
    }.items()),
    *(pytest.param(raw(line), "cluster.slurm.raw[0]", "is not a list of nodes", id=f"raw-nodes-as-{name}") for name, line in {
        "two-words": 'NodeName="old gpu-0"', "two-brackets": "NodeName=g[1-2]u-[0-1]", "an-open-bracket": "NodeName=gpu-[0-1", "a-sign": "NodeName=gpu-0;", "an-escape": "NodeName=%gpu-0",
    }.items()),
    pytest.param(raw("NodeSet=main Nodes=old-1"), "cluster.slurm.raw[0]", "has a meaning already", id="raw-node-set-named-as-a-partition"),
    pytest.param(raw("NodeSet=ALL Nodes=old-1"), "cluster.slurm.raw[0]", "has a meaning already", id="raw-node-set-of-all"),
    pytest.param(raw("DownNodes=ALL"), "cluster.slurm.raw[0]", "would take down the nodes of node sets too", id="raw-all-nodes-down"),
    pytest.param(raw("NodeName=old-[1-3]", "NodeName=old-2"), "cluster.slurm.raw[1]", "NodeName=old-2 again, after cluster.slurm.raw[0]", id="raw-node-twice"),
    pytest.param(raw("PartitionName=old Nodes=ALL", "partitionname=old Nodes=ALL"), "cluster.slurm.raw[1]", "PartitionName=old again", id="raw-partition-twice"),
    pytest.param(raw("PartitionName=old Nodes=ALL DisableRootJobs=NO"), "cluster.slurm.raw[0]", "root in a job is root on the machine", id="raw-partition-for-root"),
    pytest.param({"partitions[0].settings": {"disablerootjobs": False}}, "cluster.partitions[0].settings.disablerootjobs", "root in a job is root on the machine", id="partition-for-root"),
    pytest.param(slurm(DisableRootJobs=False), "cluster.slurm.settings.DisableRootJobs", "root in a job is root on the machine", id="jobs-of-root"),
    pytest.param(raw("DisableRootJobs=0"), "cluster.slurm.raw[0]", "root in a job is root on the machine", id="raw-jobs-of-root"),
    pytest.param(raw("MinJobAge=5 \\ "), "cluster.slurm.raw[0]", "A backslash has a meaning of its own there", id="backslash-and-space-at-the-end"),
    pytest.param(raw("MinJobAge=5\\#6"), "cluster.slurm.raw[0]", "A backslash has a meaning of its own there", id="hidden-comment"),
    pytest.param({"nodeSets[0].slurmd": {"Reason": "x"}}, "cluster.nodeSets[0].slurmd.Reason", "rendered from other keys of this node", id="reason-of-a-node"),
    pytest.param(raw("ReturnToService=0"), "cluster.slurm.raw[0]", "contradicts ReturnToService=2, which is rendered from the rest of this file. Use slurm.returnToService.", id="raw-against-a-typed-key"),
    pytest.param(raw("MpiDefault=none"), "cluster.slurm.raw[0]", "Use slurm.settings.", id="raw-against-a-default"),
    pytest.param({"slurm": {"settings": {"MinJobAge": 5}, "raw": ["MinJobAge=6"]}}, "cluster.slurm.raw[0]", "contradicts MinJobAge=5", id="raw-against-a-setting"),
    pytest.param(raw("MinJobAge=5", "MinJobAge=6"), "cluster.slurm.raw[1]", "again, after cluster.slurm.raw[0]", id="raw-against-raw"),
    pytest.param(raw("MinJobAg=5"), "cluster.slurm.raw[0]", 'Did you mean "MinJobAge"?', id="unknown-raw-key"),
    pytest.param(raw("MinJobAge"), "cluster.slurm.raw[0]", "Slurm could not read", id="raw-without-a-value"),
    pytest.param(raw("MinJobAge="), "cluster.slurm.raw[0]", "Slurm could not read", id="raw-with-an-empty-value"),
    pytest.param(raw("include /tmp/x"), "cluster.slurm.raw[0]", "Slurm could not read", id="include"),
    pytest.param(raw("MinJobAge=5 \\", "WaitTime=5"), "cluster.slurm.raw[0]", "Slurm could not read", id="line-drawn-into-the-next"),
    pytest.param(raw("NodeName=gpu-[0-3] CPUs=1"), "cluster.slurm.raw[0]", "contradicts gpu-[0-1], the nodes of node set", id="raw-node-of-a-set"),
    pytest.param(raw("NodeName=old-1 Cpu=1"), "cluster.slurm.raw[0]", 'Slurm knows no key "Cpu" on a line of NodeName', id="unknown-key-of-a-raw-node"),
    pytest.param(raw("PartitionName=main Nodes=ALL"), "cluster.slurm.raw[0]", 'contradicts the partition "main"', id="raw-partition-that-exists"),
    pytest.param(raw("PartitionName=more Nodes=ALL Default=YES"), "cluster.slurm.raw[0]", "second default partition", id="raw-default-partition"),
    pytest.param(raw("# fine", "JobCompPass=x"), "cluster.slurm.raw[1]", "it must not contain a password", id="raw-password"),
    pytest.param(raw("DefMemPerCPU=5"), "cluster.slurm.raw[0]", "Use slurm.defaultMemoryPerCpuMiB.", id="raw-typed-but-not-rendered"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "part"), [*POOLS, *NODES, *LIFECYCLE, *STORAGE, *ACCESS, *HEALTH, *NAMES, *SLURM])
def test_contradiction_is_one_fault_at_its_place(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("dev", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


def test_all_values_that_slurm_cannot_read_are_told_at_once() -> None:
    edits = {"nodeSets[0].slurmd": {"Weight": "heavy", "MemSpecLimit": "1G"}, "partitions[0].settings": {"Hidden": "maybe"}}
    found = faults("dev", {**edits, "slurm": {"settings": {"MinJobAge": "soon"}, "raw": ["NodeName=old-1 CPUs=a Weight=b", "WaitTime=c"]}})
    assert sorted(path for path, _ in found) == [
        "cluster.nodeSets[0].slurmd.MemSpecLimit",
        "cluster.nodeSets[0].slurmd.Weight",
        "cluster.partitions[0].settings.Hidden",
        "cluster.slurm.raw[0]",
        "cluster.slurm.raw[0]",
        "cluster.slurm.raw[1]",
        "cluster.slurm.settings.MinJobAge",
    ]


@pytest.mark.parametrize(("edits", "path", "part"), EKS)
def test_contradiction_in_the_cloud_example_is_one_fault(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("h100", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]
