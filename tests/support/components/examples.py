"""One small cluster, for the tests of the builders of its components."""

from collections.abc import Mapping
from typing import Any

from components.pods import PodDefaults
from configs.models.cluster import Cluster
from tests.support.configs.stacks import GONE, cluster

PROGRAMS = (
    "account_sync",
    "backup",
    "config_sync",
    "database",
    "ldap_sync",
    "login",
    "mail",
    "maintenance",
    "metrics",
    "munged",
    "names",
    "nfs_server",
    "node_checks",
    "notify",
    "root_changes",
    "root_clean",
    "root_fill",
    "running_jobs",
    "slurm",
    "slurmctld",
    "worker",
)
"""Folders of `programs`, and the packages that they share."""
PODS: PodDefaults = {
    "cluster": "dev",
    "namespace": "slurm",
    "image": "registry.example/slurm:1",
    "pull_policy": "IfNotPresent",
    "pull_secrets": ["registry"],
    "scripts": "dev-scripts-0123456789",
    "programs": {name: f"dev-{name}-0123456789" for name in PROGRAMS},
    "node_selector": {"slipway.dev/pool": "system"},
    "tolerations": [{"key": "system", "operator": "Equal", "value": "", "effect": "NoSchedule"}],
}

CONTROLLERS_PODS: PodDefaults = {**PODS, "image": "registry.example/controllers:1"}
"""Of programs of controllers/."""

_EDITS: Mapping[str, Any] = {
    "storage.root": GONE,
    "storage.home": {"storageClass": "efs", "size": "100Gi"},
    "storage.mounts": [{"name": "data", "mountPath": "/data", "readOnly": True, "claim": "datasets"}],
    "storage.state": {"size": "5Gi"},
    "login.replicas": 2,
    "login.drainGraceS": 600,
    "login.users[0].admin": GONE,
    "accounting": {"storage": {"size": "5Gi", "storageClass": "fast"}},
    "maintenance": {"enabled": False},
}


def edited_example(edits: Mapping[str, Any]) -> Cluster:
    """The small cluster with some keys of its stack file edited."""
    return cluster("dev", {**_EDITS, **edits})


CLUSTER = edited_example({})
BACKUP = {"volume": {"claim": "backups"}}
EXTERNAL = {
    "host": "db.example",
    "port": 3307,
    "database": "acct",
    "user": "slurm-dev",
    "passwordSecret": "acct-password",
    "caSecret": "acct-ca",
}
