"""What Slipway's own parts may do although a rule forbids it: one table for each rule, with a reason in each row. Data only.

An exception is for what SlurmCluster declares; a pod with the same labels that a program declares beside it has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Exempt:
    """What a container may have beyond the restricted standard."""

    reason: str
    allows: frozenset[str] = frozenset()
    """Names of checks in `restricted`."""
    capabilities: frozenset[str] = frozenset()


_ROOT = frozenset({"root"})
_FILLS = frozenset(["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SYS_CHROOT", "SYS_PTRACE"])
_INSTALLS = frozenset(
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "SETFCAP", "SETGID", "SETUID", "SYS_ADMIN", "SYS_CHROOT"]
)
_TRIES_SHELL = frozenset({"DAC_OVERRIDE", "SYS_CHROOT"})
_REMOVES_FILES = frozenset({"DAC_OVERRIDE", "FOWNER"})
_READS_FILES = frozenset({"DAC_READ_SEARCH", "SYS_CHROOT"})
_GIVES_FOLDERS = frozenset({"CHOWN", "DAC_OVERRIDE", "FOWNER"})
_SERVES_FILES = frozenset({"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "SETGID", "SETUID"})
_LOGS_IN = frozenset({"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SYS_CHROOT"})
_ENTERS_ROOT = frozenset({"SYS_ADMIN", "FSETID", "SETFCAP", "SETPCAP"})

PODS: Mapping[tuple[str, str], Exempt] = {
    ("slurmd", "slurmd"): Exempt(
        "slurmd makes cgroups, sets devices apart and starts jobs as their users",
        frozenset({"root", "privileged", "escalation", "capabilities", "seccomp"}),
    ),
    ("login", "login"): Exempt(
        "sshd starts as root and becomes the user; a session enters the shared root, and admins may install packages in it",
        frozenset({"root", "escalation", "seccomp", "apparmor"}),
        _LOGS_IN | _ENTERS_ROOT,
    ),
    ("nfs", "nfs"): Exempt(
        "the NFS server acts for each user, and finds files by handle, which the runtime's profile forbids",
        frozenset({"root", "seccomp"}),
        _SERVES_FILES,
    ),
    ("root-fill", "program"): Exempt("copies a program into a volume of the pod, where root reads it", _ROOT),
    ("root-fill", "source"): Exempt("the user's image for the shared root: its files belong to root", _ROOT),
    ("root-fill", "fill"): Exempt("copies a whole system with owners, modes and devices", _ROOT, _FILLS),
    ("root-packages", "install"): Exempt(
        "installs packages in a version of the shared root, which gets /proc and /dev for that",
        frozenset({"root", "apparmor"}),
        _INSTALLS,
    ),
    ("root-switch", "switch"): Exempt("changes the link to the current root, and tries a shell in it", _ROOT, _TRIES_SHELL),
    ("root-clean", "clean"): Exempt("removes files of any owner in versions of the root that nothing needs", _ROOT, _REMOVES_FILES),
    ("root-changes", "report"): Exempt("reads files of any owner in the shared root", _ROOT, _READS_FILES),
    ("mariadb", "backup-folders"): Exempt("gives folders on the backup volume to the database's user", _ROOT, _GIVES_FOLDERS),
    ("backup", "backup-folders"): Exempt("gives folders on the backup volume to the database's user", _ROOT, _GIVES_FOLDERS),
    ("slurmctld", "backup-folders"): Exempt("gives folders on the backup volume to Slurm's user", _ROOT, _GIVES_FOLDERS),
    ("slurmdbd", "backup-folders"): Exempt("gives folders on the backup volume to the database's user", _ROOT, _GIVES_FOLDERS),
    ("slurmdbd", "archive-folders"): Exempt("gives the folder of archives to Slurm's user", _ROOT, _GIVES_FOLDERS),
    ("identity", "prepare"): Exempt("gives a folder of the shared volume to the user of this pod", _ROOT, _GIVES_FOLDERS),
}
"""By the component and the container's name. Sources: docs/explain/security.md, and the comments beside each security context."""

HOST_PATHS: Mapping[str, str] = {
    "shared-root": "the stack file names a folder that all nodes have: storage.sharedRoot.hostPath",
    "home": "the stack file names a folder that all nodes have: storage.home.hostPath",
    "mount-": "the stack file names a folder that all nodes have: storage.mounts[].hostPath",
    "backup": "the stack file names a folder that all nodes have: backup.volume.hostPath",
    "gpu-jobs": "which job has which GPU, for the exporter of the machine's GPUs: monitoring",
    "archive": "the stack file names a folder that all nodes have: accounting.archive.volume.hostPath",
}
"""Volumes that may be folders of the machine, by name; a name that ends with a dash stands for all that begin with it."""

UNLIMITED: Mapping[tuple[str, str], str] = {
    ("login", "login"): "its memory is that of its users, whose sessions have limits each (login.limits); a limit of all would end sshd",
}
"""Containers without a memory limit, by the component and the container's name."""

UNPROTECTED: Mapping[str, str] = {
    "NodeSet": "disks of nodes are for scratch files; volumeClaimRetention of the set says what becomes of them",
}
"""Kinds that hold data, and are not protected although other parts are."""

COPIES: Mapping[str, str] = {
    "deployed": "the record of what is deployed: a copy, which each deployment writes anew, and which goes before all else",
}
"""Secrets that hold nothing that is not elsewhere, by their component. They need no protection, and their texts are not looked for."""
