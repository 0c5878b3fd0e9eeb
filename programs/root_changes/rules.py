"""Which paths of a root are not users' work: mount points, and files that programs make by themselves. Pure."""

_NOT_THERE = frozenset(
    {
        *(b"dev", b"home", b"proc", b"run", b"sys", b"tmp", b"var/tmp", b"hold", b".dockerenv"),
        *(b"etc/hosts", b"etc/hostname", b"etc/resolv.conf", b"etc/sudoers.d/slipway", b"var/spool/slurmd"),
    }
)
"""Mount points of the plugin and of the pod that a version was copied from. `hold` is the program of that pod."""
_ACCOUNTS = frozenset(b"etc/" + name + end for name in (b"passwd", b"group", b"shadow", b"gshadow") for end in (b"", b"-"))
"""Compared by name, not as files."""
_MADE = frozenset(
    {
        *(b"etc/ld.so.cache", b"etc/.pwd.lock", b"etc/subuid-", b"etc/subgid-", b"etc/mtab", b"var/cache", b"var/log", b"var/backups"),
        *(b"var/lib/apt/lists", b"var/lib/apt/periodic", b"var/lib/apt/daily_lock", b"var/lib/apt/extended_states"),
        *(b"var/lib/systemd/catalog/database", b"root/.cache", b"root/.bash_history", b"root/.lesshst", b"root/.python_history"),
        b"etc/apt/apt.conf.d/90slipway-lock",  # programs/root_fill writes it into every version
    }
)
_DPKG = frozenset(
    b"var/lib/dpkg/" + name
    for name in (
        *(b"status", b"status-old", b"available", b"available-old", b"diversions-old", b"statoverride-old", b"lock", b"lock-frontend"),
        *(b"info", b"updates", b"triggers", b"parts", b"tmp.ci", b"cmethopt"),
    )
)
"""The record of packages, which are compared and carried as packages. Its alternatives, diversions and overrides are ordinary files."""
_NAMES = frozenset({b"__pycache__", b"icon-theme.cache", b"mimeinfo.cache", b"gconv-modules.cache"})
_ENDS = (b".dpkg-new", b".dpkg-tmp")
_KEEPS_FOLDERS = (b"var/cache/", b"var/log/")


def is_mounted_over(path: bytes) -> bool:
    """True for a path that jobs never see."""
    return path in _NOT_THERE


def is_made(path: bytes, kind: str = "f") -> bool:
    """True for a path that is left out with everything below it: caches, logs, lists, and dpkg's own record.

    Folders in caches and logs stay: programs expect those of their package.
    """
    name = path.rpartition(b"/")[2]
    if path in _MADE:
        return kind != "d" or path + b"/" not in _KEEPS_FOLDERS
    if path.startswith(_KEEPS_FOLDERS):
        return kind != "d"
    return path in _DPKG or path in _ACCOUNTS or name in _NAMES or name.endswith(_ENDS)
