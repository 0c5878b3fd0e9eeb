"""What Slurm's log says about its files, and what a throwaway container needs so that its daemons can read them. Pure.

It does not check accounts and users: the container's database has only the stack's own users.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from names import ports
from slurm.conf import known, pairs_of
from slurm.hostlists import HostlistError, expand

UP = "Running as primary controller"
"""slurmctld has read all of its files."""
DATABASE_UP = re.compile(r"slurmdbd version \S+ started")
_STUCK = re.compile(r"cannot stat file .* retrying in")
"""A file that another one names is not there. Slurm looks for it for a minute, then ends."""

_COMPLAINT = re.compile(r"(?:\[[^\]]*\]\s*)*(?:[\w-]+: )?(fatal|error|warning): (.*)")
_NOISE = re.compile(
    r"High latency for|agent_fini: left|slurm_send_node_msg: .*Unexpected missing socket error|"
    r"Database settings not recommended values|accounts_list_build: No association for account|If munged is up|"
    r"Even though we are collecting accounting information"
)
"""What is said of the container, its empty database, and of questions that ended early."""
_NOTES = re.compile(r"_get_group_members: Could not find configured group")
"""Errors that may be due to the container: groups may come from LDAP."""
_MISTAKES = re.compile(r"from final GRES list|more configured than expected in slurm\.conf|Invalid hostnames in \w+ configuration")
"""Warnings about files that contradict each other: Slurm goes on without the GPUs or switches."""
_FILES: Sequence[tuple[re.Pattern[str], tuple[str, ...]]] = (
    (re.compile(r"topology|switch(?!/)|\bblocks?\b|\btopo\b", re.IGNORECASE), ("topology.yaml", "topology.conf")),
    (re.compile(r"gres|File=", re.IGNORECASE), ("gres.conf",)),
    (re.compile(r"cgroup"), ("cgroup.conf",)),
    (re.compile(r"plugstack|spank", re.IGNORECASE), ("plugstack.conf",)),
    (re.compile(r"partition|Unable to process configuration file", re.IGNORECASE), ("slurm.conf",)),
)
"""Which file a line is about, where it names none: the first of these whose words it has and which is there."""
_NO_ADDRESS = ("CLOUD", "FUTURE")
"""States of nodes whose names Slurm does not look up."""


@dataclass(frozen=True)
class Line:
    """A line of a daemon's log, and the file that it is about."""

    file: str
    text: str


@dataclass(frozen=True)
class Said:
    """What a log says about the files."""

    mistakes: tuple[Line, ...] = ()
    notes: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Needs:
    """What has to be there before slurmctld can read a slurm.conf."""

    user: str
    names: tuple[str, ...]
    """Names that it looks up."""
    folders: tuple[str, ...]
    """Folders of its user's."""
    jwt_key: str
    """Where the key that signs tokens is to be; empty for none."""
    has_accounting: bool
    qos: tuple[str, ...]
    """QOS that partitions name. Without them slurmctld does not start."""


def judge(log: str, files: Iterable[str], default: str = "slurm.conf") -> Said:
    """The lines of a log about the files, without repeats, as mistakes and notes. `files` are the names of the files that exist.

    A line that hints at no file is about the file of the next line that does: Slurm logs the cause first.
    """
    file_names = frozenset(files)
    complaints = [match.groups() for line in log.splitlines() if (match := _COMPLAINT.match(line))]
    lines: list[tuple[bool, Line]] = []
    about = default
    for level, text in reversed([(level, text.strip()) for level, text in complaints if not _NOISE.search(text)]):
        about = _file_of(text, file_names) or about
        is_mistake = not _NOTES.search(text) and (level != "warning" or bool(_MISTAKES.search(text)))
        lines.append((is_mistake, Line(about, text)))
    by_kind = {kind: tuple(dict.fromkeys(line for is_mistake, line in reversed(lines) if is_mistake is kind)) for kind in (True, False)}
    return Said(by_kind[True], by_kind[False])


def is_stuck(log: str) -> bool:
    """True if Slurm waits for a file that will not come."""
    return bool(_STUCK.search(log))


def needs_of(slurm_conf: str) -> Needs:
    """What a slurm.conf needs. Lines that Slurm cannot read need nothing: slurmctld reports them."""
    lines = [pairs for line in slurm_conf.splitlines() if (pairs := pairs_of(line))]
    plain = {key.lower(): value for pairs in lines for key, value in pairs[:1]}
    nodes = [dict(_lower(pairs)) for pairs in lines if known(pairs[0][0], ("NodeName",))]
    partitions = [dict(_lower(pairs)) for pairs in lines if known(pairs[0][0], ("PartitionName",))]
    controllers = [value for pairs in lines for key, value in pairs[:1] if key.lower() == "slurmctldhost"]
    hosts = [name for value in controllers for name in re.findall(r"[^()\s]+", value)]
    hosts += [plain[key] for key in ("accountingstoragehost", "accountingstoragebackuphost") if key in plain]
    qos = {name for partition in partitions for key in ("qos", "allowqos", "denyqos") for name in partition.get(key, "").split(",")}
    state, pid = plain.get("statesavelocation", "/var/spool"), plain.get("slurmctldpidfile", "/run/slurmctld.pid")
    return Needs(
        user=plain.get("slurmuser", "root"),
        names=tuple(dict.fromkeys(name for name in (*hosts, *_node_names(nodes)) if _is_name(name))),
        folders=(state, pid.rpartition("/")[0] or "/"),
        jwt_key=jwt_key_of(plain.get("authaltparameters", "")),
        has_accounting="slurmdbd" in plain.get("accountingstoragetype", ""),
        qos=tuple(sorted(qos - {"", "normal", "ALL", "all"})),
    )


def jwt_key_of(text: str) -> str:
    """The path of the key that signs tokens, in Slurm's AuthAltParameters; empty for none."""
    match = re.search(r"\bjwt_key=([^,\s]+)", text)
    return match[1] if match else ""


def port_of_slurmdbd(slurmdbd_conf: str) -> int:
    """The port on which slurmdbd listens."""
    match = re.search(r"^\s*DbdPort\s*=\s*(\d+)", slurmdbd_conf, re.IGNORECASE | re.MULTILINE)
    return int(match[1]) if match else ports.SLURMDBD


def throwaway_database(slurmdbd_conf: str, host: str, user: str, password: str) -> str:
    """slurmdbd.conf with the container's host and database in place of the cluster's."""
    new_values = {
        "DbdHost": host,
        "DbdAddr": host,
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StorageUser": user,
        "StoragePass": password,
        "StorageLoc": "slurm_acct_db",
    }
    replaced = (*new_values, "DbdBackupHost", "StorageBackupHost", "StoragePort", "StorageParameters", "StoragePassScript", "LogFile")
    kept_lines = [line for line in slurmdbd_conf.splitlines() if not ((pairs := pairs_of(line)) and known(pairs[0][0], replaced))]
    return "".join(f"{line}\n" for line in (*kept_lines, *(f"{key}={value}" for key, value in new_values.items())))


def folders_of_slurmdbd(slurmdbd_conf: str) -> tuple[str, ...]:
    """Folders that slurmdbd writes to."""
    values = {key.lower(): value for line in slurmdbd_conf.splitlines() for key, value in (pairs_of(line) or ())}
    return tuple(folder for folder in (values.get("pidfile", "").rpartition("/")[0], values.get("archivedir", "")) if folder)


def _file_of(text: str, file_names: frozenset[str]) -> str:
    named = [name for name in re.findall(r"/([\w.-]+\.\w+)", text) if name in file_names]
    guessed = (name for pattern, names in _FILES if pattern.search(text) for name in names if name in file_names)
    return named[0] if named else next(guessed, "")


def _lower(pairs: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((key.lower(), value) for key, value in pairs)


def _node_names(nodes: Iterable[Mapping[str, str]]) -> Iterable[str]:
    for node in nodes:
        if node.get("state", "").upper().startswith(_NO_ADDRESS) or node["nodename"].upper() == "DEFAULT":
            continue
        for key in ("nodeaddr", "nodename"):
            if key in node:
                try:
                    yield from expand(node[key])
                except HostlistError:  # slurmctld reports it
                    continue
                break


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", text, re.ASCII)) and not re.fullmatch(r"[\d.]+", text)
