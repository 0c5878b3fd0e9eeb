"""Mistakes of shape: one wrong thing in a good stack file gives one fault, at its place, in plain English."""

from pathlib import Path
from typing import Any

import pytest

from configs.faults import ConfigFaults
from configs.load import load_cluster
from tests.support.configs.stacks import GONE, edited
from tests.unit.configs.found_faults import faults

ROOT_TAR = {"url": "https://files.example/root.tar.zst", "sha256": "ab" * 32}


def renamed(name: str) -> dict[str, Any]:
    """The node set gpu of the dev stack called otherwise, wherever it is named."""
    places = [
        "nodeSets[1].name",
        "partitions[0].nodeSets[1]",
        "partitions[1].nodeSets[0]",
        "healthChecks[3].nodeSets[0]",
        "healthChecks[4].nodeSets[0]",
    ]
    return dict.fromkeys([*places, *(f"healthChecks[{at}].nodeSets[1]" for at in (0, 1, 2, 5, 6, 7))], name)


CASES = [
    pytest.param({"logn": {}}, "cluster.logn", 'no such key. Did you mean "login"?', id="unknown-key-at-the-top"),
    pytest.param({"nodeSets[0].memoryMib": 5}, "cluster.nodeSets[0].memoryMib", 'Did you mean "memoryMiB"?', id="unknown-key-in-capitals"),
    pytest.param(
        {"nodeSets[0].memory_mib": 5}, "cluster.nodeSets[0].memory_mib", 'Did you mean "memoryMiB"?', id="unknown-key-in-snake-case"
    ),
    pytest.param({"slurm.zzz": 1}, "cluster.slurm.zzz", "There are: cgroupSettings, cgroupVersion,", id="unknown-key-unlike-any"),
    pytest.param(
        {"nodePools[0].hardware.gpus.mem": 1}, "cluster.nodePools[0].hardware.gpus.mem", "no such key", id="unknown-key-deep-down"
    ),
    pytest.param({"nodePools": GONE, "nodePool": []}, "cluster.nodePool", 'Did you mean "nodePools"?', id="misspelled-key-is-one-fault"),
    pytest.param(
        {"notifications": {"smtp": {"host": "mail.example", "domain": "example.com"}}},
        "cluster.notifications.smtp.sender",
        "is missing.",
        id="mail-address-missing",
    ),
    pytest.param({"name": GONE}, "cluster.name", "is missing. Prefix of every object", id="required-key-missing"),
    pytest.param({"storage": GONE}, "cluster.storage", "is missing.", id="storage-missing"),
    pytest.param({"storage.home": GONE}, "cluster.storage.home", "is missing. Homes of the users", id="home-missing"),
    pytest.param({"nodeSets[1].size": GONE}, "cluster.nodeSets[1].size", "neither size (fixed) nor min and max", id="size-missing"),
    pytest.param({"nodePools[0].max": GONE}, "cluster.nodePools[0].max", "is missing. Machines that the pool", id="max-missing"),
    pytest.param({"partitions": None}, "cluster.partitions", "has no value.", id="key-without-value"),
    pytest.param({"login": None}, "cluster.login", "has no value. Give it one, or leave the key out.", id="section-without-value"),
    pytest.param({"partitions": {}}, "cluster.partitions", "is a mapping of keys; a list is wanted.", id="mapping-for-a-list"),
    pytest.param({"nodeSets[0]": "cpu"}, "cluster.nodeSets[0]", '"cpu" is text; a mapping of keys is wanted.', id="text-for-a-mapping"),
    pytest.param({"storage": "efs"}, "cluster.storage", '"efs" is text; a mapping of keys is wanted.', id="text-for-a-section"),
    pytest.param(
        {"nodeSets[0].size": "2"}, "cluster.nodeSets[0].size", "whole number is wanted. Write it without quotes.", id="number-in-quotes"
    ),
    pytest.param({"nodeSets[0].size": 1.5}, "cluster.nodeSets[0].size", "1.5 is a number; a whole number is wanted.", id="fraction"),
    pytest.param({"nodeSets[0].size": True}, "cluster.nodeSets[0].size", "truth value; a whole number is wanted.", id="truth-for-a-number"),
    pytest.param({"nodeSets[0].size": -1}, "cluster.nodeSets[0].size", "-1 is less than 0", id="negative-size"),
    pytest.param({"nodeSets[0].size": 70_000}, "cluster.nodeSets[0].size", "70000 is more than 65536", id="size-over-slurms-own-limit"),
    pytest.param({"nodePools[0].max": 0}, "cluster.nodePools[0].max", "0 is less than 1", id="pool-of-no-machine"),
    pytest.param({"createNamespace": "no"}, "cluster.createNamespace", "true or false is wanted.", id="text-for-truth"),
    pytest.param({"deletionProtection": "true"}, "cluster.deletionProtection", "Write it without quotes.", id="truth-in-quotes"),
    pytest.param({"nodeSets[1].features": "h100"}, "cluster.nodeSets[1].features", "a list is wanted. Write [..]", id="text-for-a-list"),
    pytest.param({"nodeSets[1].features": [100]}, "cluster.nodeSets[1].features[0]", 'Put it in quotes: "100".', id="number-for-text"),
    pytest.param({"nodeSets[1].features": ["a b"]}, "cluster.nodeSets[1].features[0]", '"a b" is not a feature', id="bad-feature"),
    pytest.param(
        {"slurm": {"cgroupVersion": "v3"}}, "cluster.slurm.cgroupVersion", '"v3" is none of auto, v1, v2.', id="wrong-cgroup-version"
    ),
    pytest.param({"slurm": {"returnToService": 3}}, "cluster.slurm.returnToService", "3 is none of 0, 1, 2.", id="wrong-return-to-service"),
    pytest.param({"login.service.type": "Nodeport"}, "cluster.login.service.type", 'Did you mean "NodePort"?', id="wrong-service-type"),
    pytest.param({"partitions[0].state": "up"}, "cluster.partitions[0].state", 'Did you mean "UP"?', id="wrong-partition-state"),
    pytest.param({"healthChecks[0].check": "disc"}, "cluster.healthChecks[0].check", 'Did you mean "disk"?', id="wrong-check"),
    pytest.param({"name": "Dev"}, "cluster.name", '"Dev" is not a DNS label', id="cluster-name-in-capitals"),
    pytest.param({"name": "a" * 21}, "cluster.name", "has 21 characters; 20 are allowed.", id="cluster-name-too-long"),
    pytest.param({"namespace": "my_space"}, "cluster.namespace", "is not a DNS label", id="bad-namespace"),
    pytest.param(renamed("gpu_1"), "cluster.nodeSets[1].name", "is not a DNS label", id="bad-host-name"),
    pytest.param(renamed("1gpu"), "cluster.nodeSets[1].name", "first a letter", id="host-name-starting-with-a-digit"),
    pytest.param(renamed("g" * 31), "cluster.nodeSets[1].name", "has 31 characters; 30 are allowed.", id="host-name-too-long"),
    pytest.param(renamed("gpu\nNodeName=x"), "cluster.nodeSets[1].name", "is not a DNS label", id="line-break-in-a-name"),
    pytest.param({"partitions[1].name": "a b"}, "cluster.partitions[1].name", "is not a partition name", id="bad-partition-name"),
    pytest.param({"partitions[0].maxTime": "2 days"}, "cluster.partitions[0].maxTime", "not a time that Slurm knows", id="bad-time"),
    pytest.param({"partitions[0].maxTime": 3600}, "cluster.partitions[0].maxTime", "Write the time in quotes", id="unquoted-time"),
    pytest.param(
        {"partitions[0].priorityTier": 70_000}, "cluster.partitions[0].priorityTier", "more than 65533", id="priority-tier-too-high"
    ),
    pytest.param(
        {"storage.home": {"hostPath": "data/home"}},
        "cluster.storage.home.hostPath",
        'relative path. Write it from the root: "/data/home".',
        id="relative-path",
    ),
    pytest.param(
        {"storage.home": {"hostPath": "/a/../etc"}}, "cluster.storage.home.hostPath", "not a plain absolute path", id="path-that-climbs"
    ),
    pytest.param(
        {"storage.mounts": [{"name": "m" * 41, "mountPath": "/m", "claim": "m"}]},
        "cluster.storage.mounts[0].name",
        "has 41 characters; 40 are allowed.",
        id="mount-name-too-long",
    ),
    pytest.param({"nodeSets[0].update": {"maxUnavailable": 0}}, "cluster.nodeSets[0].update.maxUnavailable", "at least 1", id="none-away"),
    pytest.param({"nodeSets[0].update": {"maxUnavailable": "0%"}}, "cluster.nodeSets[0].update.maxUnavailable", '"100%"', id="no-percent"),
    pytest.param(
        {"nodeSets[0].update": {"type": "Rolling"}}, "cluster.nodeSets[0].update.type", "is none of RollingUpdate", id="bad-update"
    ),
    pytest.param(
        {"nodeSets[0].sise": 2, "nodeSets[0].size": GONE}, "cluster.nodeSets[0].sise", 'Did you mean "size"?', id="size-misspelled"
    ),
    pytest.param({"storage.state.size": "5GB"}, "cluster.storage.state.size", '"5GB" is not a size such as 100Gi', id="bad-size"),
    pytest.param({"storage.state.size": 5}, "cluster.storage.state.size", 'Put it in quotes: "5".', id="size-as-a-number"),
    pytest.param(
        {"images": {"slurm": "registry/slurm"}}, "cluster.images.slurm", "not an image with its tag or digest", id="image-without-tag"
    ),
    pytest.param({"slurm": {"raw": ["A=1\nSlurmUser=root"]}}, "cluster.slurm.raw[0]", "holds a line break", id="line-break-in-a-raw-line"),
    pytest.param(
        {"slurm": {"settings": {"MailDomain": "x\nSlurmUser=root"}}},
        "cluster.slurm.settings.MailDomain",
        "holds a line break",
        id="line-break-in-a-setting",
    ),
    pytest.param(
        {"slurm": {"settings": {"MailDomain": "x # y"}}}, "cluster.slurm.settings.MailDomain", "holds #", id="comment-in-a-setting"
    ),
    pytest.param({"slurm": {"settings": {"MailDomain": 'x" y'}}}, "cluster.slurm.settings.MailDomain", 'holds "', id="quote-in-a-setting"),
    pytest.param(
        {"slurm": {"settings": {"MailDomain": "x\\"}}}, "cluster.slurm.settings.MailDomain", "holds \\", id="backslash-in-a-setting"
    ),
    pytest.param(
        {"slurm": {"settings": {"TopologyParam": ""}}},
        "cluster.slurm.settings.TopologyParam",
        "would read the next key",
        id="empty-setting",
    ),
    pytest.param(
        {"slurm": {"settings": {"A B": 1}}}, "cluster.slurm.settings", '"A B" is not a key of Slurm', id="setting-key-with-a-space"
    ),
    pytest.param(
        {"slurm": {"settings": {"MailDomain": ["x"]}}},
        "cluster.slurm.settings.MailDomain",
        "is a list; text is wanted.",
        id="list-for-a-setting",
    ),
    pytest.param({"login.users[0].name": "Alice"}, "cluster.login.users[0].name", '"Alice" is not a user name', id="bad-user-name"),
    pytest.param({"login.users[0].name": "a:0"}, "cluster.login.users[0].name", "is not a user name", id="colon-in-a-user-name"),
    pytest.param({"login.users[0].uid": "x"}, "cluster.login.users[0].uid", "whole number is wanted.", id="uid-as-text"),
    pytest.param(
        {"login.users[0].sshKeys": ["ssh-rsa A\nssh-rsa B"]}, "cluster.login.users[0].sshKeys[0]", "line break", id="line-break-in-a-key"
    ),
    pytest.param({"login.users[0].shell": "bash"}, "cluster.login.users[0].shell", "relative path", id="relative-shell"),
    pytest.param(
        {"nodePools[0].existing.labels": {"a b": "x"}},
        "cluster.nodePools[0].existing.labels",
        "not a Kubernetes label key",
        id="bad-label-key",
    ),
    pytest.param(
        {"nodePools[0].existing.labels": {"a": "x y"}},
        "cluster.nodePools[0].existing.labels.a",
        "not a Kubernetes label value",
        id="bad-label-value",
    ),
    pytest.param(
        {"nodePools[0].existing.taints[0].effect": "NoExec"},
        "cluster.nodePools[0].existing.taints[0].effect",
        'Did you mean "NoExecute"?',
        id="wrong-taint-effect",
    ),
    pytest.param({"gpuOperator": {"version": "25"}}, "cluster.gpuOperator.version", "not a chart version", id="bad-chart-version"),
    pytest.param({"nodeSets[0].resources.cpu": "half"}, "cluster.nodeSets[0].resources.cpu", "not a CPU quantity", id="bad-cpu-quantity"),
    pytest.param(
        {"healthChecks[0].settings": {"minFreeMiB": -1}}, "cluster.healthChecks[0].settings.minFreeMiB", "less than 0", id="negative-limit"
    ),
    pytest.param(
        {"storage.nfsServer": {"size": "1Ti"}},
        "cluster.storage.nfsServer.clusterIP",
        "is missing. A free address",
        id="server-without-address",
    ),
    pytest.param(
        {"storage.nfsServer": {"size": "1Ti", "clusterIP": "nfs"}},
        "cluster.storage.nfsServer.clusterIP",
        "not an IP address",
        id="no-address",
    ),
    pytest.param(
        {"storage.nfsServer": {"size": "1Ti", "clusterIP": "127.0.0.1"}},
        "cluster.storage.nfsServer.clusterIP",
        "no other machine can reach",
        id="address-of-the-machine-itself",
    ),
    pytest.param(
        {"storage.nfsServer": {"clusterIP": "10.96.0.9"}}, "cluster.storage.nfsServer.size", "is missing.", id="server-without-size"
    ),
    pytest.param(
        {"storage.nfsServer": {"size": "1Ti", "clusterIP": "10.96.0.9", "networks": ["10.0.0.1/16"]}},
        "cluster.storage.nfsServer.networks[0]",
        "not a network",
        id="bad-network-of-nodes",
    ),
    pytest.param({"nodeSets[0].memoryMiB": 10**400}, "cluster.nodeSets[0].memoryMiB", "more than 1000000000", id="absurd-number"),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1", "tar": {**ROOT_TAR, "url": "ftp://files.example/root.tar"}}]}},
        "cluster.storage.root.versions[0].tar.url",
        "is not where a tar is: https://host/path",
        id="tar-by-ftp",
    ),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1", "tar": {**ROOT_TAR, "url": "file:///shared/../etc/root.tar"}}]}},
        "cluster.storage.root.versions[0].tar.url",
        "file:///shared/path",
        id="tar-outside-the-volume",
    ),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1", "tar": {**ROOT_TAR, "url": "file:///shared/a/.."}}]}},
        "cluster.storage.root.versions[0].tar.url",
        "file:///shared/path",
        id="tar-above-the-volume",
    ),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1", "tar": {**ROOT_TAR, "url": "https://me:secret@files.example/root.tar"}}]}},
        "cluster.storage.root.versions[0].tar.url",
        "is not where a tar is",
        id="password-in-an-address",
    ),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1", "tar": {**ROOT_TAR, "sha256": "0x" + "ab" * 31}}]}},
        "cluster.storage.root.versions[0].tar.sha256",
        "64 hexadecimal digits",
        id="digest-of-another-kind",
    ),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1", "tar": {"url": ROOT_TAR["url"]}}]}},
        "cluster.storage.root.versions[0].tar.sha256",
        "is missing.",
        id="tar-without-a-digest",
    ),
    pytest.param(
        {"storage.root": {"versions": [{"name": "1.manifest"}]}},
        "cluster.storage.root.versions[0].name",
        "ends like the records that lie beside a version",
        id="version-called-like-a-record",
    ),
]

EKS_CASES = [
    pytest.param(
        {"nodePools[0].eks.securityGroupIds": ["web"]},
        "cluster.nodePools[0].eks.securityGroupIds[0]",
        "not a security group's id, such as sg-",
        id="bad-security-group",
    ),
    pytest.param({"nodePools[0].eks.subnetIds": []}, "cluster.nodePools[0].eks.subnetIds", "is empty; at least one", id="no-subnet"),
    pytest.param({"nodePools[0].eks.subnetIds": ["x"]}, "cluster.nodePools[0].eks.subnetIds[0]", "not a subnet's id", id="bad-subnet"),
    pytest.param({"nodePools[0].eks.nodeRoleArn": "role"}, "cluster.nodePools[0].eks.nodeRoleArn", "not a role's ARN", id="bad-role"),
    pytest.param(
        {"nodePools[0].eks.capacityReservationId": "x"},
        "cluster.nodePools[0].eks.capacityReservationId",
        "not a capacity",
        id="bad-reservation",
    ),
    pytest.param(
        {"storage.mounts[0].nfs.path": "export"}, "cluster.storage.mounts[0].nfs.path", "not an absolute path", id="relative-export"
    ),
    pytest.param(
        {"storage.mounts[0].nfs.options": ["a,b"]}, "cluster.storage.mounts[0].nfs.options[0]", "not one mount option", id="bad-option"
    ),
]


@pytest.mark.parametrize(("edits", "path", "part"), CASES)
def test_wrong_shape_is_one_fault_at_its_place(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("dev", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


@pytest.mark.parametrize(("edits", "path", "part"), EKS_CASES)
def test_wrong_shape_in_the_cloud_example_is_one_fault(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("h100", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        pytest.param({}, "is empty. Pulumi.dev.yaml is an example", id="nothing"),
        pytest.param(None, "is empty.", id="null"),
        pytest.param([], "is a list, where a mapping of keys is wanted.", id="list"),
        pytest.param("dev", "is text, where a mapping of keys is wanted.", id="text"),
        pytest.param(7, "is a number, where a mapping of keys is wanted.", id="number"),
    ],
)
def test_config_of_the_wrong_type_is_one_fault(raw: Any, part: str) -> None:
    with pytest.raises(ConfigFaults) as caught:
        load_cluster(raw, Path("/nowhere"), "Pulumi.dev.yaml")
    assert [fault.path for fault in caught.value.faults] == ["cluster"]
    assert part in str(caught.value)


def test_key_that_is_no_text_is_a_fault() -> None:
    raw = edited("dev", {})
    raw["login"][22] = "port"
    with pytest.raises(ConfigFaults, match=r"cluster\.login: has the key 22, which is not text"):
        load_cluster(raw, Path("/nowhere"), "Pulumi.dev.yaml")


def test_loop_of_yaml_anchors_is_a_fault() -> None:
    raw = edited("dev", {})
    raw["login"]["again"] = raw["login"]
    with pytest.raises(ConfigFaults, match="nested too deeply"):
        load_cluster(raw, Path("/nowhere"), "Pulumi.dev.yaml")
