"""Which names and numbers are for people. The same for users of the config and of LDAP, on whatever machine this runs."""

import re

LEAST_ID = 1000
MOST_ID = 2_000_000_000
NOBODY = 65_534

ACCOUNTS = {"slurm": 64_030, "munge": 401, "slurmrestd": 402, "mysql": 403, "slipway-identity": 405}
"""The image's own accounts with fixed numbers, uid and gid alike, as images/slurm/setup/10-accounts.sh makes
them. Files on claims belong to them."""
TAKEN = frozenset({NOBODY, *ACCOUNTS.values()})
"""Numbers that no person and no group may have."""

LONGEST_NAME = 32
_NAME = re.compile(r"[a-z_][a-z0-9_-]*(\.[a-z0-9_-]+)*", re.ASCII)


def is_name(text: str) -> bool:
    """True for a name that passwd, group, a file's name and a home folder can all carry."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


RESERVED = frozenset(
    """
    root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc nobody systemd-network systemd-timesync messagebus
    sshd slurm munge slurmrestd slipway-identity mysql adm tty disk dialout fax voice cdrom floppy tape sudo audio dip operator src shadow
    utmp video sasl plugdev staff users nogroup crontab input sgx kvm render netdev _ssh _apt
    kmem lpadmin rdma
    """.split()  # noqa: SIM905 - words read better than fifty quotes
)
"""Users and groups of the image: a user of the same name would be shadowed by them, or be them."""
