"""Users from LDAP: a small program that asks the directory, and the folder on the shared volume from which all pods read users and groups.

What it does is in programs/ldap_sync; why it is one program and not a daemon in each pod, in docs/decisions. Needs a shared volume
that keeps owners, and whose own folder users cannot write to.
"""

import json
import urllib.parse
from typing import NotRequired, TypedDict

import pulumi

from components.labels import Manifest, labels, metadata, object_name, selector
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
    pod_template,
    program_command,
    program_mounts,
    program_volumes,
)
from components.shared_mounts import SharedMountArgs, build_mount, build_volume, root_mount
from components.users import user_keys_name, users_name
from configs.models.cluster import Cluster
from configs.models.ldap import Ldap
from names import paths
from slurm.people import ACCOUNTS

COMPONENT = "identity"
IDENTITY_UID = ACCOUNTS["slipway-identity"]
"""User `slipway-identity`; fixed in the image."""

_CA_PATH = "/etc/slipway/ldap-ca"
_PASSWORD_PATH = "/etc/slipway/ldap-password"  # noqa: S105 - a path
_SILENT_S = 600
"""A round takes at most a few minutes, on several servers that all do not answer."""


class LdapArgs(TypedDict):
    """The directory. Each key is one of `login.ldap`, whose description it shares."""

    uris: list[str]
    """The servers, in their order."""
    start_tls: bool
    """TLS on ldap://."""
    ca_secret: NotRequired[str]
    """Secret with `ca.crt`; the image's authorities where left out."""
    user_base_dn: str
    """Where users are."""
    group_base_dn: str
    """Where groups are."""
    user_filter: str
    """Which entries are users."""
    group_filter: str
    """Which entries are groups."""
    bind_dn: NotRequired[str]
    """The user to bind as; anonymous where left out."""
    bind_secret: NotRequired[str]
    """Secret with the `password` of `bind_dn`."""
    key_attribute: str
    """Attribute of the public keys."""
    refresh_s: int
    """Seconds between two questions."""
    min_uid: int
    """The least uid of a person."""
    min_gid: int
    """The least gid of people."""
    max_removed_percent: int
    """More gone at once is a fault of LDAP."""


class IdentityArgs(TypedDict):
    """What users from LDAP need to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    ldap: LdapArgs
    """The directory."""
    volume: SharedMountArgs
    """The shared volume; its folder `identity` is written."""
    users: str
    """Name of the ConfigMap with the users of the config."""
    user_keys: str
    """Name of the ConfigMap with their keys."""


def ldap_args(cluster: Cluster, pods: PodDefaults, said: Ldap) -> IdentityArgs:
    """The directory as the config says it, with its defaults worked out."""
    ldap: LdapArgs = {
        "uris": list(said.uris),
        "start_tls": said.start_tls,
        "user_base_dn": said.user_base_dn or said.base_dn,
        "group_base_dn": said.group_base_dn or said.base_dn,
        "user_filter": said.user_filter,
        "group_filter": said.group_filter,
        "key_attribute": said.key_attribute,
        "refresh_s": said.refresh_s,
        "min_uid": said.min_uid,
        "min_gid": said.min_gid,
        "max_removed_percent": said.max_removed_percent,
    }
    if said.ca_secret is not None:
        ldap["ca_secret"] = said.ca_secret
    if said.bind_dn is not None and said.bind_secret is not None:
        ldap["bind_dn"], ldap["bind_secret"] = said.bind_dn, said.bind_secret
    return {
        "pods": pods,
        "ldap": ldap,
        "volume": root_mount(cluster),
        "users": users_name(cluster.name),
        "user_keys": user_keys_name(cluster.name),
    }


class Identity(pulumi.ComponentResource):
    """The program that keeps users from LDAP, one pod. It is ready while LDAP answers; when it is not, or gone, the users stay as they
    were. A change of anything here rolls this pod and no other."""

    deployment_name: pulumi.Output[str]
    """Name of its Deployment."""

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Identity", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        declare(build_network_policy(args), child)
        deployment = build_deployment(args)
        declare(deployment, child)
        self.deployment_name = pulumi.Output.from_input(deployment["metadata"]["name"])
        self.register_outputs({"deployment_name": self.deployment_name})


def build_settings(ldap: LdapArgs) -> str:
    """Settings of the program, as JSON. The password is in its own file."""
    said: dict[str, object] = {
        "uris": ldap["uris"],
        "startTls": ldap["start_tls"],
        "userBaseDn": ldap["user_base_dn"],
        "groupBaseDn": ldap["group_base_dn"],
        "userFilter": ldap["user_filter"],
        "groupFilter": ldap["group_filter"],
        "keyAttribute": ldap["key_attribute"],
        "refreshS": ldap["refresh_s"],
        "minUid": ldap["min_uid"],
        "minGid": ldap["min_gid"],
        "maxRemovedPercent": ldap["max_removed_percent"],
    }
    if "ca_secret" in ldap:
        said["caFile"] = f"{_CA_PATH}/ca.crt"
    if "bind_dn" in ldap:
        said |= {"bindDn": ldap["bind_dn"], "passwordFile": f"{_PASSWORD_PATH}/password"}
    return json.dumps(said, sort_keys=True)


def build_network_policy(args: IdentityArgs) -> Manifest:
    """In: nothing. Out: names, and the ports of LDAP; where its servers are is known by name only, and policies know addresses."""
    pods = args["pods"]
    cluster = pods["cluster"]
    names = {"ports": [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]}
    servers = {"ports": [{"port": port, "protocol": "TCP"} for port in ports_of(args["ldap"]["uris"])]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(object_name(cluster, COMPONENT), pods["namespace"], labels(cluster, COMPONENT)),
        "spec": {
            "podSelector": {"matchLabels": selector(cluster, COMPONENT)},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [names, servers],
        },
    }


def ports_of(uris: list[str]) -> list[int]:
    """The ports of LDAP servers, each once."""
    parts = [urllib.parse.urlsplit(uri) for uri in uris]
    return sorted({part.port or (636 if part.scheme == "ldaps" else 389) for part in parts})


def build_deployment(args: IdentityArgs) -> Manifest:
    """The Deployment of the program: never two at once."""
    pods = args["pods"]
    cluster = pods["cluster"]
    spec: Manifest = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector(cluster, COMPONENT)},
        "template": pod_template(pods, COMPONENT, _pod(args)),
    }
    about = metadata(object_name(cluster, COMPONENT), pods["namespace"], labels(cluster, COMPONENT))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec}


def _pod(args: IdentityArgs) -> Manifest:
    pods, ldap = args["pods"], args["ldap"]
    programs = program_mounts("ldap_sync")
    prepare = container(
        pods,
        "prepare",
        "",
        [*programs, build_mount(args["volume"])],
        command=program_command("ldap_sync", str(IDENTITY_UID), module="prepare"),
        workingDir=paths.PACKAGES,
        securityContext=_PREPARING_CONTEXT,
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    identity = container(
        pods,
        COMPONENT,
        "",
        [
            *(*programs, mount("users", paths.STACK_USERS, read_only=True)),
            mount("user-keys", paths.STACK_USER_KEYS, read_only=True),
            # Of the shared volume nothing but its own folder.
            {**mount(args["volume"]["name"], "/identity"), "subPath": COMPONENT},
            mount("tmp", "/tmp"),  # noqa: S108 - a mount of the pod's own
            *([mount("ca", _CA_PATH, read_only=True)] if "ca_secret" in ldap else []),
            *([mount("password", _PASSWORD_PATH, read_only=True)] if "bind_secret" in ldap else []),
        ],
        # The library would read settings of LDAP from the image's own files.
        env={"LDAPNOINIT": "1"},
        requests=("10m", "48Mi"),
        command=program_command("ldap_sync", build_settings(ldap), imports_debian=True),
        workingDir=paths.PACKAGES,
        securityContext=confined(IDENTITY_UID),
        terminationMessagePolicy="FallbackToLogsOnError",
        # The program removes the file as soon as LDAP does not answer it, so one look is enough.
        readinessProbe=exec_probe("test", "-e", "/tmp/ready", periodSeconds=5, failureThreshold=1),  # noqa: S108 - the container's own mount
        livenessProbe=exec_probe(
            *("bash", "-c", f"(( $(date +%s) - $(stat -c %Y /tmp/alive) < {_SILENT_S} ))"),
            initialDelaySeconds=_SILENT_S,
            periodSeconds=30,
            timeoutSeconds=5,
        ),
    )
    return {
        "terminationGracePeriodSeconds": 5,  # killed at any moment, it leaves whole files
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "initContainers": [prepare],
        "containers": [identity],
        "volumes": [
            *(*program_volumes(pods, "ldap_sync"), empty_volume("tmp", in_memory=True)),
            *(config_volume("users", args["users"]), config_volume("user-keys", args["user_keys"])),
            build_volume(pods["cluster"], args["volume"]),
            *([_secret_file("ca", ldap["ca_secret"], "ca.crt")] if "ca_secret" in ldap else []),
            *([_secret_file("password", ldap["bind_secret"], "password")] if "bind_secret" in ldap else []),
        ],
    }


def _secret_file(name: str, secret: str, key: str) -> Manifest:
    """One key of a Secret, readable by the pod's own user without an fsGroup, which would re-own the files of the shared volume."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o444, "items": [{"key": key, "path": key}]}}


_PREPARING_CONTEXT: Manifest = {
    # Root, to give one folder away.
    "runAsUser": 0,
    "runAsGroup": 0,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
