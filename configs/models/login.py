"""Config of the way in: the login pods, their Service, and who may use them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import Count, Flag, Line, MiB, Model, Positive, Shown, UserName, is_one_line, refuse
from configs.models.ldap import Ldap
from configs.models.users import Group, User

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
    """True: the keys in `~/.ssh/authorized_keys` may log in as well, on login pods only. A removed user is refused anyway. A user who
    stays can log in with the keys in the home even after all others are withdrawn."""
    admin_groups: tuple[UserName, ...] = Field(default=(), examples=[["hpc-admins"]])
    """Groups whose members are admins, as with `admin: true`."""

    @property
    def has_admins(self) -> bool:
        """True when anyone may use sudo."""
        return bool(self.admin_groups) or any(user.admin for user in self.users)
