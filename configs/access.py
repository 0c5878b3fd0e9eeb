"""Config of the way in: the login pods, their Service, users and groups."""

from typing import Any, Literal

from pydantic import Field

from configs.fields import AbsolutePath, Count, Flag, Line, MiB, Model, Name, Positive, Text, UserName
from configs.ldap import Ldap


class LoginService(Model):
    """The Service in front of sshd."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    node_port: Positive | None = None
    """Default: Kubernetes chooses."""
    annotations: dict[Line, Line] = {}
    source_ranges: tuple[Line, ...] = ()
    """Networks that may connect to a LoadBalancer, such as 203.0.113.0/24. Empty: all."""


class LoginLimits(Model):
    """What each user may use of a login pod, over all sessions there. A change counts from the user's next login."""

    cpus: Positive | None = None
    """CPUs. Default: no limit."""
    memory_mib: MiB | None = None
    """Memory, in MiB. Default: no limit."""
    tasks: Positive = 2000
    """Processes and threads, so that nobody locks others out."""


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
    admin: Flag = False
    """May do everything in a login session by `sudo`, such as install packages in the current version of `storage.root`, for all to use.
    For people whom you trust with root on the machines of login pods and workers, see docs/security.md."""


class Login(Model):
    """The login pods and who may use them."""

    replicas: Count = Field(default=1, le=20)
    service: LoginService = LoginService()
    ssh_to_nodes: Flag = True
    """`ssh NODE` goes to workers where the user has a job, and is one of the job's own processes there. False: workers have no sshd."""
    banner: Text = ""
    """What a terminal shows at login, above the state of the cluster."""
    limits: LoginLimits = LoginLimits()
    drain_grace_s: Count = Field(default=600, le=604_800)
    """How long a login pod which has to go waits for its open sessions, in seconds; new ones go to other pods at once."""
    groups: tuple[Group, ...] = ()
    users: tuple[User, ...] = ()
    ldap: Ldap | None = None
    """Further users and groups, of a directory. Without it, there are those of the config only."""
    home_keys: Flag = False
    """True: `~/.ssh/authorized_keys` counts too on login pods, beside the keys of the config and of LDAP. A user who is removed is refused
    all the same; but a user who stays and whose keys are taken away can still log in with what is in the home."""
    admin_groups: tuple[UserName, ...] = ()
    """Groups whose members are admins as if they had `admin: true`."""

    @property
    def has_admins(self) -> bool:
        """True when anyone may use sudo."""
        return bool(self.admin_groups) or any(user.admin for user in self.users)
