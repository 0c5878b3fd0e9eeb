"""Users from LDAP: a program that reads the directory and writes users and groups into a folder of the shared volume for all pods.

The program is in programs/ldap_sync. docs/explain/decisions explains why it is one program and not a daemon in each pod. Needs a shared
volume that keeps owners, and whose own folder users cannot write to.
"""

import urllib.parse
from collections.abc import Iterable

import pulumi

from components import network
from components.labels import Manifest
from components.objects import declare
from components.pods import (
    PodDefaults,
    config_volume,
    confined,
    container,
    empty_volume,
    exec_probe,
    lost_node_tolerations,
    mount,
    program_command,
    program_mounts,
    program_volumes,
    root_context,
)
from components.shared_mounts import build_mount, build_volume, root_mount
from components.users import user_keys_name, users_name
from components.workloads import deployment
from configs.models.cluster import Cluster
from configs.models.ldap import Ldap
from names import paths
from programs.ldap_sync.settings import Settings, to_json
from slurm.people import ACCOUNTS

COMPONENT = "identity"
IDENTITY_UID = ACCOUNTS["slipway-identity"]
"""User `slipway-identity`; fixed in the image."""

_CA_PATH = "/etc/slipway/ldap-ca"
_PASSWORD_PATH = "/etc/slipway/ldap-password"  # noqa: S105 - a path
_SILENT_S = 600
"""Longer than a round, which takes at most a few minutes if several servers do not answer."""


class Identity(pulumi.ComponentResource):
    """The program that syncs users from LDAP, one pod. It is ready while LDAP answers; otherwise the users stay as they were. A change
    rolls only this pod."""

    deployment_name: pulumi.Output[str]
    """Name of its Deployment."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, ldap: Ldap, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Identity", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        declare(build_network_policy(pods, ldap), child)
        deployment = build_deployment(cluster, pods, ldap)
        declare(deployment, child)
        self.deployment_name = pulumi.Output.from_input(deployment["metadata"]["name"])
        self.register_outputs({"deployment_name": self.deployment_name})


def build_settings(ldap: Ldap) -> Settings:
    """The argument of the program: `login.ldap` with its defaults."""
    binds = ldap.bind_dn is not None and ldap.bind_secret is not None
    return Settings(
        uris=ldap.uris,
        start_tls=ldap.start_tls,
        user_base=ldap.user_base_dn or ldap.base_dn,
        user_filter=ldap.user_filter,
        group_base=ldap.group_base_dn or ldap.base_dn,
        group_filter=ldap.group_filter,
        key_attribute=ldap.key_attribute,
        refresh_s=ldap.refresh_s,
        min_uid=ldap.min_uid,
        min_gid=ldap.min_gid,
        max_removed_percent=ldap.max_removed_percent,
        ca_file=f"{_CA_PATH}/ca.crt" if ldap.ca_secret is not None else None,
        bind_dn=ldap.bind_dn if binds else None,
        password_file=f"{_PASSWORD_PATH}/password" if binds else None,
    )


def build_network_policy(pods: PodDefaults, ldap: Ldap) -> Manifest:
    """No ingress; egress to DNS and to LDAP's ports on any address, as policies cannot name hosts."""
    servers = {"ports": [network.port(number) for number in ports_of(ldap.uris)]}
    return network.build_policy(pods["cluster"], pods["namespace"], COMPONENT, None, [network.NAMES, servers])


def ports_of(uris: Iterable[str]) -> list[int]:
    """The ports of LDAP servers, each once."""
    parts = [urllib.parse.urlsplit(uri) for uri in uris]
    return sorted({part.port or (636 if part.scheme == "ldaps" else 389) for part in parts})


def build_deployment(cluster: Cluster, pods: PodDefaults, ldap: Ldap) -> Manifest:
    """The Deployment of the program: never two pods at once."""
    return deployment(pods, COMPONENT, _pod(cluster, pods, ldap), strategy={"type": "Recreate"})


def _pod(cluster: Cluster, pods: PodDefaults, ldap: Ldap) -> Manifest:
    programs, volume = program_mounts("ldap_sync"), root_mount(cluster)
    prepare = container(
        pods,
        "prepare",
        "",
        [*programs, build_mount(volume)],
        command=program_command("ldap_sync", str(IDENTITY_UID), module="prepare"),
        workingDir=paths.PACKAGES,
        securityContext=root_context("CHOWN", "DAC_OVERRIDE", "FOWNER"),  # to give one folder away
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    identity = container(
        pods,
        COMPONENT,
        "",
        [
            *(*programs, mount("users", paths.STACK_USERS, read_only=True)),
            mount("user-keys", paths.STACK_USER_KEYS, read_only=True),
            # Only its own folder of the shared volume.
            {**mount(volume.name, "/identity"), "subPath": COMPONENT},
            mount("tmp", "/tmp"),  # noqa: S108 - a mount of the pod's own
            *([mount("ca", _CA_PATH, read_only=True)] if ldap.ca_secret is not None else []),
            *([mount("password", _PASSWORD_PATH, read_only=True)] if ldap.bind_secret is not None else []),
        ],
        # Else the library reads LDAP settings from the image's files.
        env={"LDAPNOINIT": "1"},
        requests=("10m", "48Mi"),
        command=program_command("ldap_sync", to_json(build_settings(ldap)), imports_debian=True),
        workingDir=paths.PACKAGES,
        securityContext=confined(IDENTITY_UID),
        terminationMessagePolicy="FallbackToLogsOnError",
        # The program removes the file as soon as LDAP does not answer, so one failure is enough.
        readinessProbe=exec_probe("test", "-e", "/tmp/ready", periodSeconds=5, failureThreshold=1),  # noqa: S108 - the container's own mount
        livenessProbe=exec_probe(
            *("bash", "-c", f"(( $(date +%s) - $(stat -c %Y /tmp/alive) < {_SILENT_S} ))"),
            initialDelaySeconds=_SILENT_S,
            periodSeconds=30,
            timeoutSeconds=5,
        ),
    )
    return {
        "terminationGracePeriodSeconds": 5,  # it may be killed at any moment: files are always complete
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "initContainers": [prepare],
        "containers": [identity],
        "volumes": [
            *(*program_volumes(pods, "ldap_sync"), empty_volume("tmp", in_memory=True)),
            *(config_volume("users", users_name(cluster.name)), config_volume("user-keys", user_keys_name(cluster.name))),
            build_volume(cluster.name, volume),
            *([_secret_file("ca", ldap.ca_secret, "ca.crt")] if ldap.ca_secret is not None else []),
            *([_secret_file("password", ldap.bind_secret, "password")] if ldap.bind_secret is not None else []),
        ],
    }


def _secret_file(name: str, secret: str, key: str) -> Manifest:
    """One key of a Secret, readable by the pod's user without an fsGroup, which would change the owner of files on the shared volume."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o444, "items": [{"key": key, "path": key}]}}
