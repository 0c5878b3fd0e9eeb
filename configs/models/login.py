"""Config of the way in: the login pods, their Service, users and groups."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import AbsolutePath, Count, Flag, Line, MiB, Model, Name, Positive, Shown, UserName, is_one_line, refuse
from configs.models.ldap import Ldap

_LONGEST_TEXT = 4000


def _text(value: str) -> str:
    for line in value.splitlines():
        if not is_one_line(line.replace("\t", " ")):
            raise refuse(f"{quoted(line)} holds a control character. Lines of printable characters are allowed.")
    if len(value) > _LONGEST_TEXT:
        raise refuse(f"has {len(value)} characters; {_LONGEST_TEXT} are allowed.")
    return value


Text = Annotated[StrictStr, AfterValidator(_text), Shown("lines of printable characters", "Welcome.", {"maxLength": _LONGEST_TEXT})]
"""Lines for people to read on a terminal."""


class LoginService(Model):
    """The Service in front of sshd."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Type of the Service."""
    node_port: Positive | None = None
    """Port on the nodes, from 30000 to 32767, for the types NodePort and LoadBalancer. Default: Kubernetes chooses one."""
    annotations: dict[Line, Line] = {}
    """Annotations of the Service, such as those of the cloud's load balancer."""
    source_ranges: tuple[Line, ...] = ()
    """Networks that may connect to a LoadBalancer. Default: all."""


class LoginLimits(Model):
    """What each user may use of a login pod, over all sessions there. A change applies from the user's next login."""

    cpus: Positive | None = None
    """CPUs of one user. Default: no limit."""
    memory_mib: MiB | None = None
    """Memory of one user, in MiB. Default: no limit."""
    tasks: Positive = Field(default=2000, examples=[4000])
    """Processes and threads of one user, so that nobody locks others out."""


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
    """True: the user may run anything as root with `sudo` in a login session, such as the installation of packages into the current
    version of `storage.root`, for everybody. For people whom you trust with root on the machines of login pods and workers; see
    docs/security.md."""


class Login(Model):
    """The login pods and who may use them."""

    replicas: Count = Field(default=1, le=20)
    """Number of login pods."""
    service: LoginService = LoginService()
    """The Service in front of them."""
    ssh_to_nodes: Flag = True
    """True: a user can `ssh` to the nodes where the user has a job, and is part of the job there. False: workers have no sshd."""
    banner: Text = ""
    """Text shown at login, above the state of the cluster."""
    limits: LoginLimits = LoginLimits()
    """What each user may use of a login pod."""
    drain_grace_s: Count = Field(default=600, le=604_800)
    """How long a stopping login pod waits for its open sessions, in seconds; new sessions go to other pods at once."""
    groups: tuple[Group, ...] = ()
    """Groups that users can share."""
    users: tuple[User, ...] = ()
    """The people who can log in. With `ldap`, these are in addition to its users, and take precedence."""
    ldap: Ldap | None = None
    """A directory with further users and groups. Default: none."""
    home_keys: Flag = False
    """True: the keys in `~/.ssh/authorized_keys` may log in as well, on login pods only. A removed user is refused all the same; but a
    user who stays and whose keys are withdrawn can still log in with those in the home."""
    admin_groups: tuple[UserName, ...] = Field(default=(), examples=[["hpc-admins"]])
    """Groups whose members are admins, as with `admin: true`."""

    @property
    def has_admins(self) -> bool:
        """True when anyone may use sudo."""
        return bool(self.admin_groups) or any(user.admin for user in self.users)
