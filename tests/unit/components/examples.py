"""Arguments of every component of one small cluster, for the tests of their builders."""

from components.accounting import AccountingArgs
from components.accounts import AccountsArgs
from components.backup import BackupArgs
from components.control_plane import ControlPlaneArgs
from components.database import ExternalDatabaseArgs
from components.login import LoginNodesArgs
from components.pods import PodDefaults
from components.shared_mounts import SharedMount
from configs.models.storage import Disk, Source

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

MOUNTS = [
    SharedMount("shared-root", "/shared", Source(host_path="/var/lib/slipway/dev/shared")),
    SharedMount("home", "/home", Source(storage_class="efs", size="100Gi")),
    SharedMount("mount-data", "/data", Source(claim="datasets"), read_only=True),
]

CONTROL_PLANE: ControlPlaneArgs = {
    "pods": PODS,
    "users": "dev-users",
    "state": Disk(size="5Gi"),
    "key_spread_s": 120,
    "jwt_generation": 1,
    "deletion_protection": False,
}

ACCOUNTING: AccountingArgs = {
    "pods": PODS,
    "slurmdbd_conf": "DbdHost=dev-slurmdbd\n",
    "users": "dev-users",
    "jwt_secret": "dev-jwt",
    "storage": Disk(size="5Gi", storage_class="fast"),
    "password_generation": 1,
    "jwt_generation": 1,
    "deletion_protection": True,
}

EXTERNAL: ExternalDatabaseArgs = {
    "host": "db.example",
    "port": 3307,
    "database": "acct",
    "user": "slurm-dev",
    "password_secret": "acct-password",
    "tls": True,
    "ca_secret": "acct-ca",
}

BACKUP: BackupArgs = {
    "pods": PODS,
    "volume": SharedMount("backup", "/backup", Source(claim="backups")),
    "schedule": "30 2 * * *",
    "keep": 14,
    "state_interval_s": 600,
    "restore_from": "",
    "has_database": True,
}

ACCOUNTS: AccountsArgs = {
    "file": "accounts.json",
    "text": '{"accounts": {}}',
    "slurm_config": "dev-slurm-config",
}

LOGIN: LoginNodesArgs = {
    "pods": PODS,
    "replicas": 2,
    "service": {"type": "NodePort", "node_port": 30022, "annotations": {}, "source_ranges": []},
    "users": "dev-users",
    "user_keys": "dev-user-keys",
    "mounts": MOUNTS,
    "home_keys": False,
    "has_admins": False,
    "node_host_keys": "dev-node-host-keys",
    "settings": {"banner": "", "limits": "tasks=2000\n"},
    "drain_grace_s": 600,
    "deletion_protection": False,
}
