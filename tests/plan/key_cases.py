"""What `every_key` cannot know by rule: stacks in which the keys matter, values that need others beside them, and the keys whose change is
not applied. For tests only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.plan.every_key import Config
from tests.support.configs.stacks import GONE, edited

_GPUS = {"model": "a100", "count": 2, "memoryMiB": 40_000}
_BIG = {"sockets": 2, "coresPerSocket": 8, "threadsPerCore": 2, "memoryMiB": 64_000, "gpus": _GPUS}
_URL = "https://repairs.example.com/slipway"
_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEq8R3oWoR7k8pR1nP3dUoD0yT6sC2vW5xY8zA1bCdEf alice@example.com"
_ROOT = {"versions": [{"name": "1", "image": "registry.example/root:1"}, {"name": "2", "carryFrom": "1"}], "current": "2"}
_OTHER_POOL = {"hardware": {"coresPerSocket": 8, "memoryMiB": 20_000}, "max": 2, "existing": {"labels": {"pool": "other"}}}
_COMMAND = {"name": "disk", "check": "command", "command": ["/shared/one"], "schedule": "0 3 * * *", "nodeSets": ["cpu", "gpu", "big"]}
_TAR = {"url": "https://files.example.com/root.tar", "sha256": "0" * 64}

BASES: Mapping[str, Config] = {
    "dev": edited(
        "dev",
        {
            "images": {"slurm": "registry.example/slurm:1", "root": "registry.example/root:1"},
            "nodePools[+]": {"name": "big", "hardware": _BIG, "max": 4, "existing": {"labels": {"pool": "big"}}},
            "nodeSets[+]": {
                "name": "big",
                "pool": "big",
                "size": 2,
                "gpus": {"model": "a100", "count": 2, "sockets": [0, 1]},
                "update": {"type": "Maintenance", "reservation": "maint"},
                "drain": {"action": "Requeue", "deadlineS": 3600},
                "tmp": {"sizeMiB": 2048},
                "volumeClaims": [{"name": "disk", "mountPath": "/disk", "size": "5Gi"}],
                "machineCauses": [{"condition": "FabricDegraded"}],
                "remedies": {"steps": ["RecreatePod", "RebootMachine"], "machines": "Webhook", "webhook": _URL},
            },
            "topologies[+]": {"name": "nvlink", "block": {"size": 2, "count": 2}},
            "partitions[+]": {"name": "big", "nodeSets": ["big"], "topology": "nvlink"},
            "healthChecks[+]": {"name": "kernel", "check": "kernel", "contexts": ["interval"], "nodeSets": ["big"]},
            "healthChecks[0].nodeSets": ["cpu", "gpu", "big"],
            "notifications": {
                "smtp": {"host": "mail.example.com", "sender": "slurm@example.com", "domain": "example.com"},
                "receivers": [
                    {"name": "chat", "urlSecret": "chat"},
                    {"name": "mail", "kind": "mail", "to": ["chat@example.com"]},
                ],
            },
            "monitoring.receivers": [
                {"name": "chat", "kind": "slack", "urlSecret": "chat"},
                {"name": "ops", "kind": "mail", "to": ["ops@example.com"]},
            ],
            "login.groups[+]": {"name": "hpc", "gid": 20_002},
            "storage.mounts": [{"name": "data", "mountPath": "/data", "hostPath": "/data"}],
        },
    ),
    "h100": edited(
        "h100",
        {
            "accounting.archive": {"records": ["jobs"], "volume": {"storageClass": "efs", "size": "5Gi"}},
            "accounting.accounts[0].folder": True,
            "accounting.accounts[1].perUser": {"ada": {"fairshare": 2}},
            "accounting.qos[0].flags": ["EnforceUsageThreshold"],
            "accounting.qos[0].usageThreshold": 0.5,
            "storage.mounts": [
                {"name": "datasets", "mountPath": "/data", "storageClass": "efs", "size": "5Gi"},
                {"name": "projects", "mountPath": "/projects", "claim": "projects"},
            ],
            "slurm.settings.PreemptType": "preempt/qos",
            "slurm.settings.PreemptMode": "REQUEUE",
            "slurm.settings.PriorityWeightAssoc": 10,
        },
    ),
    "mini": edited(
        "cluster",
        {
            "storage.nfsServer": {"size": "10Gi", "clusterIP": "10.96.20.50"},
            "storage.home": {"nfsServer": True},
            "storage.mounts": [{"name": "data", "mountPath": "/data", "nfsServer": True}],
            "storage.root": _ROOT,
            "accounting": {
                "external": {"host": "db.example.com", "passwordSecret": "db"},
                "purge": {"jobs": "12months"},
                "archive": {"records": ["jobs"], "volume": {"claim": "archive"}},
            },
            "monitoring": {"prometheus": "Operator"},
            "backup": {"volume": {"claim": "backup"}},
        },
    ),
}
"""One machine type with GPUs and all that watches nodes; EKS with LDAP and accounts; an NFS server, an external database, the Operator."""


@dataclass(frozen=True)
class Case:
    """A change of a key that needs others beside it. `before` makes the stack in which it is made."""

    base: str
    edits: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])


CASES: Mapping[str, Case] = {
    "nodePools.name": Case("dev", {"nodePools[1].name": "large", "nodeSets[3].pool": "large"}),
    "nodePools.machine": Case("h100", {"nodePools[1].machine": "m7i.8xlarge"}),
    "nodePools.hardware": Case(
        "dev",
        {
            "nodePools[1].hardware": GONE,
            "nodePools[1].machine": "p4d.24xlarge",
            "nodeSets[3].gpus": {"model": "a100", "count": 8},
        },
    ),
    "nodePools.eks.clusterName": Case("h100", {f"nodePools[{pool}].eks.clusterName": "other" for pool in range(2)}),
    "nodePools.eks.amiType": Case("h100", {"nodePools[1].eks.amiType": "BOTTLEROCKET_x86_64"}),
    "nodePools.eks.desired": Case("h100", {"nodePools[1].eks.desired": 12}),
    "gpuOperator.driver": Case("h100", {"gpuOperator.driver": True}, {"nodePools[0].eks.amiType": "CUSTOM"}),
    "nodeSets.name": Case("dev", {"nodeSets[2].name": "other", "partitions[2].nodeSets": ["other"]}),
    "nodeSets.pool": Case("dev", {"nodeSets[2].pool": "other"}, {"nodePools[+]": {"name": "other", **_OTHER_POOL}}),
    "nodeSets.gpus.vendor": Case(
        "dev",
        {
            "nodePools[1].hardware.gpus.vendor": "amd",
            "nodePools[1].existing.gpuResource": "amd.com/gpu",
            "nodeSets[3].gpus.vendor": "amd",
        },
    ),
    "nodeSets.gpus.model": Case("dev", {"nodePools[1].hardware.gpus.model": "h200", "nodeSets[3].gpus.model": "h200"}),
    "nodeSets.gpus.count": Case(
        "dev", {"nodePools[1].hardware.gpus.count": 4, "nodeSets[3].gpus.count": 4}, {"nodeSets[3].gpus.sockets": []}
    ),
    "nodeSets.gpus.mig.profile": Case(
        "dev", {"nodeSets[3].gpus.mig[0].profile": "2g.10gb"}, {"nodeSets[3].gpus.mig": [{"profile": "1g.5gb", "count": 1}]}
    ),
    "nodeSets.remedies.confirmedBy": Case("dev", {"nodeSets[3].remedies.confirmedBy": "disk"}),
    "nodeSets.remedies.verifiedBy": Case("dev", {"nodeSets[3].remedies.verifiedBy": ["disk"]}),
    "nodeSets.remedies.machines": Case(
        "dev", {"nodeSets[3].remedies.machines": "EC2", "nodeSets[3].remedies.webhook": GONE}, {"ec2": {"region": "us-east-2"}}
    ),
    "nodeSets.drain.action": Case("dev", {"nodeSets[3].drain.action": "Cancel"}),
    "partitions.default": Case("dev", {"partitions[0].default": False, "partitions[1].default": True}),
    "storage.home.nfsServer": Case("mini", {"storage.home": {"hostPath": "/home"}}),
    "storage.mounts.nfsServer": Case("mini", {"storage.mounts[0].nfsServer": False, "storage.mounts[0].hostPath": "/data"}),
    "storage.root.current": Case("mini", {"storage.root.current": "1"}),
    "storage.root.versions.tar.sha256": Case(
        "mini", {"storage.root.versions[0].tar.sha256": "1" * 64}, {"storage.root.versions[0]": {"name": "1", "tar": _TAR}}
    ),
    "login.adminGroups": Case("dev", {"login.adminGroups": ["hpc"]}),
    "login.users.sshKeys": Case("dev", {"login.users[0].sshKeys": [_KEY]}),
    "login.ldap.startTls": Case(
        "h100",
        {"login.ldap.startTls": True, "login.ldap.allowPlaintext": GONE},
        {"login.ldap.uris": ["ldap://ldap.example.com"], "login.ldap.allowPlaintext": True, "login.ldap.caSecret": GONE},
    ),
    "accounting.enabled": Case(
        "mini", {"accounting": {"enabled": False}}, {"accounting": {"external": {"host": "db.example.com", "passwordSecret": "db"}}}
    ),
    "healthChecks.per": Case("dev", {"healthChecks[5].per": "set"}, {"healthChecks[5].settings.minBandwidthMBs": 10}),
    "healthChecks.command": Case("dev", {"healthChecks[0].command": ["/shared/other"]}, {"healthChecks[0]": _COMMAND}),
    "healthChecks.after": Case("dev", {"healthChecks[1].after": ["disk"]}),
    "healthChecks.folders": Case("dev", {"healthChecks[7].folders": ["/scratch"]}),
    "healthChecks.xids": Case("dev", {"healthChecks[8].xids": [63]}),
    "healthChecks.ignoredXids": Case("dev", {"healthChecks[8].ignoredXids": [119]}),
    "healthChecks.patterns": Case("dev", {"healthChecks[8].patterns": {"thermal": "temperature above threshold"}}),
    "healthChecks.nodeStates": Case("dev", {"healthChecks[8].nodeStates": ["idle"]}),
    "notifications.receivers.accounts": Case("dev", {"notifications.receivers[0].accounts": ["research"]}),
    "notifications.receivers.events": Case("dev", {"notifications.receivers[0].events": ["jobFail"]}),
    "notifications.receivers.to": Case("dev", {"notifications.receivers[1].to": ["other@example.com"]}),
}
REFUSED: Mapping[str, tuple[Case, str]] = {
    "nodePools.hardware.gpus": (Case("dev", {"nodePools[1].hardware.gpus": GONE}), 'a machine of pool "big" has no GPUs'),
    "nodePools.hardware.gpus.vendor": (Case("dev", {"nodePools[1].hardware.gpus.vendor": "amd"}), 'a machine of pool "big" has amd GPUs'),
    "nodePools.hardware.gpus.model": (Case("dev", {"nodePools[1].hardware.gpus.model": "h200"}), 'a machine of pool "big" has "h200"'),
    "nodePools.hardware.gpus.count": (Case("dev", {"nodePools[1].hardware.gpus.count": 4}), 'a machine of pool "big" has 4'),
    "backup.volume.nfsServer": (Case("mini", {"backup.volume": {"nfsServer": True}}), "cluster.backup.volume.nfsServer: that server has"),
    "accounting.archive.volume.nfsServer": (
        Case("mini", {"accounting.archive.volume": {"nfsServer": True}}),
        "cluster.accounting.archive.volume.nfsServer: that server has",
    ),
}
"""Keys that have to fit others, or that nothing may say: every other value alone is a fault with these words."""
NOTHING: Mapping[str, str] = {
    "keys.keep": "says what becomes of a later generation; what is there stays as it is",
    "login.ldap.allowPlaintext": "only allows what would be refused without it",
}
"""Keys that by nature change nothing in the cluster, and why."""
TOLD = frozenset(
    {
        *(
            "storage.state.storageClass",
            "storage.nfsServer.storageClass",
            "accounting.storage.storageClass",
            "monitoring.storage.storageClass",
        ),
        *("nodeSets.volumeClaims.size", "nodeSets.volumeClaims.storageClass", "nodePools.eks.desired"),
    }
)
"""Keys whose change is not applied to what is there: the preview says so, with the remedy."""
