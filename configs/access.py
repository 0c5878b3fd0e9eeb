"""Config of the way in: the login pods, their Service, users and groups."""

from typing import Any, Literal

from pydantic import Field

from configs.fields import AbsolutePath, Count, Line, Model, Name, Positive, UserName
from configs.ldap import Ldap


class LoginService(Model):
    """The Service in front of sshd."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    node_port: Positive | None = None
    """Default: Kubernetes chooses."""
    annotations: dict[Line, Line] = {}
    source_ranges: tuple[Line, ...] = ()
    """Networks that may connect to a LoadBalancer, such as 203.0.113.0/24. Empty: all."""


class Group(Model):
    """A group that users can share."""

    name: UserName
    gid: Count


def _uid(data: dict[str, Any]) -> Any:
    return data.get("uid", 0)


class User(Model):
    """A person who can log in, with keys only."""

    name: UserName
    uid: Count
    gid: Count = Field(default_factory=_uid)
    """Default: the uid. A group of the user's own name is made for it unless `login.groups` has one with this gid."""
    groups: tuple[Name, ...] = ()
    """Names of `login.groups`."""
    ssh_keys: tuple[Line, ...] = ()
    """Public keys. Once loaded, those of `ssh_key_files` are here too."""
    ssh_key_files: tuple[Line, ...] = ()
    """Files of public keys, relative to the project."""
    shell: AbsolutePath = "/bin/bash"


class Login(Model):
    """The login pods and who may use them."""

    replicas: Count = Field(default=1, le=20)
    service: LoginService = LoginService()
    groups: tuple[Group, ...] = ()
    users: tuple[User, ...] = ()
    ldap: Ldap | None = None
    """Further users and groups, of a directory. Without it, there are those of the config only."""
