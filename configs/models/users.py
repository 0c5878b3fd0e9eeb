"""Config of users and groups, and of the keys with which users log in."""

from typing import Any

from pydantic import Field

from configs.models.fields import AbsolutePath, Count, Flag, Line, Model, Name, UserName


class Group(Model):
    """A group that users can share."""

    name: UserName
    """Name of the group."""
    gid: Count
    """Numeric id of the group."""


def _uid(data: dict[str, Any]) -> Any:
    return data.get("uid", 0)


class User(Model):
    """A person who can log in, with keys only."""

    name: UserName
    """Login name."""
    uid: Count
    """Numeric id of the user."""
    gid: Count = Field(default_factory=_uid, examples=[20_001])
    """Numeric id of the user's own group. It is made with the user's name unless `login.groups` has this gid. Default: the uid."""
    groups: tuple[Name, ...] = ()
    """Names of further groups, from `login.groups`."""
    ssh_keys: tuple[Line, ...] = Field(default=(), examples=[["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDl3... ada@example.com"]])
    """Public keys that may log in, each a line of an authorized_keys file."""
    ssh_key_files: tuple[Line, ...] = ()
    """Files with public keys that may log in, relative to the project's folder."""
    shell: AbsolutePath = Field(default="/bin/bash", examples=["/usr/bin/zsh"])
    """Login shell."""
    admin: Flag = False
    """True: the user may run anything as root with `sudo` in a login session. For example, they can install packages into the current
    version of `storage.root`, for everybody. Set it for people whom you trust with root on the machines of login pods and workers; see
    docs/explain/security.md."""
