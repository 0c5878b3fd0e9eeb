"""Has slurmctld read folders of Slurm's files: `python3 -m programs.config_check.run FOLDER...`, as root, in a throwaway container without
a network.

Prints JSON. It changes /etc/hosts, the loopback device and the folders that the files name, but not the files.
"""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slurm.commands import SlurmError, call

from .daemons import WORK, CheckError, Daemons, last_of, make_folder, make_key, start_munged, start_slurmdbd, text_of, wait
from .plan import UP, Needs, Said, is_stuck, judge, needs_of

ADDRESS = "198.18.255.1"
"""From the range for benchmarks. Slurm looks up no address while the loopback's is the only one."""
_READ_S = 20
_ASK_S = 20
_ALL_S = 100
_PROGRAMS = ("slurmctld", "scontrol", "munged", "setpriv", "ip")
_ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")


def check(folders: list[Path], daemons: Daemons) -> dict[str, Any]:
    """What slurmctld reports of each folder. Raises CheckError, OSError, SlurmError."""
    texts = {folder: (folder / "slurm.conf").read_text() for folder in folders}
    needs = {folder: needs_of(text) for folder, text in texts.items()}
    has_accounting = any(need.has_accounting for need in needs.values())
    _find_programs((*_PROGRAMS, *(_ACCOUNTING if has_accounting else ())))
    WORK.mkdir(mode=0o755, parents=True)
    _make_names(name for need in needs.values() for name in need.names)
    start_munged(daemons)
    version = call("slurmctld", "-V", timeout_s=_ASK_S).split()[-1]
    if has_accounting:
        findings = _start_accounting(texts, needs, daemons)
        if findings:
            return {"version": version, "sets": [_result(folder, findings) for folder in folders]}
    return {"version": version, "sets": [_read(folder, needs[folder], daemons) for folder in folders]}


def _start_accounting(texts: Mapping[Path, str], needs: Mapping[Path, Needs], daemons: Daemons) -> Said | None:
    """Starts slurmdbd with the first slurmdbd.conf, and adds the QOS of partitions. Returns slurmdbd's complaints about the file."""
    first = next(iter(texts))
    owner = next((folder for folder in texts if (folder / "slurmdbd.conf").exists()), None)
    conf = (owner / "slurmdbd.conf").read_text() if owner else f"SlurmUser={needs[first].user}\n"
    if findings := start_slurmdbd(conf, texts[first], needs[first].user, daemons):
        return findings
    if qos := sorted({name for need in needs.values() for name in need.qos}):
        _ask("sacctmgr", "--immediate", "add", "qos", ",".join(qos), conf=WORK / "slurmdbd/slurm.conf")
    return None


def _read(folder: Path, needs: Needs, daemons: Daemons) -> dict[str, Any]:
    """Runs slurmctld with the files of a folder until it has read them, has ended, or hangs."""
    for name in needs.folders:
        make_folder(Path(name), needs.user)
    for old_file in Path(needs.folders[0]).iterdir():  # of the set before
        old_file.unlink()
    if needs.jwt_key:
        make_key(Path(needs.jwt_key), needs.user, 32)
    conf, log = folder / "slurm.conf", WORK / "slurmctld.log"
    # -v: its errors and the end of its start are in the log, at any SlurmctldDebug.
    slurmctld = daemons.start(needs.user, log, "slurmctld", "-D", "-v", "-L", "/dev/null", env={"SLURM_CONF": str(conf)})
    try:
        is_over = wait(lambda: slurmctld.poll() is not None or UP in text_of(log) or is_stuck(text_of(log)), _READ_S)
        text, code = text_of(log), slurmctld.poll()
        counts = {what: _count(what, conf) for what in ("nodes", "partitions")} if UP in text else {}
    finally:
        daemons.end(slurmctld)
    findings = judge(text, (file.name for file in folder.iterdir()))
    if not counts and not findings.mistakes:
        reason = f"ended with {code}" if is_over else f"has not read {folder} within {_READ_S} s"
        raise CheckError(f"slurmctld {reason}; it said last: {last_of(log)}")
    return _result(folder, findings, counts)


def _result(folder: Path, findings: Said, counts: Mapping[str, int] | None = None) -> dict[str, Any]:
    """It has `nodes` and `partitions` if slurmctld has read the files to their end."""
    return {"folder": str(folder), **asdict(findings), **(counts or {})}


def _count(what: str, conf: Path) -> int:
    output = _ask("scontrol", "--all", "--oneliner", "show", what, conf=conf)
    return sum(line.startswith(("NodeName=", "PartitionName=")) for line in output.splitlines())


def _make_names(names: Iterable[str]) -> None:
    """Gives every name that Slurm looks up this container's address."""
    done = subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(f"the container may not have an address of its own (it needs CAP_NET_ADMIN): {done.stderr.strip()}")
    with Path("/etc/hosts").open("a") as hosts:
        hosts.writelines(f"{ADDRESS} {name}\n" for name in dict.fromkeys((*names, socket.gethostname())))


def _find_programs(names: Iterable[str]) -> None:
    if missing := [name for name in names if shutil.which(name) is None]:
        raise CheckError(f"the image has no {', '.join(missing)}")


def _ask(*command: str, conf: Path) -> str:
    return call(*command, timeout_s=_ASK_S, env={"SLURM_CONF": str(conf)})


def main(folders: list[str]) -> int:
    """Prints what slurmctld reports; 0 even if it complains. Prints the reason and returns 1 if it could not be asked."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(_ALL_S)
    daemons = Daemons()
    try:
        answer = check([Path(folder) for folder in folders], daemons)
    except (CheckError, OSError, SlurmError) as error:
        answer = {"fault": str(error)}
    finally:
        daemons.end_all()
    print(json.dumps(answer))
    return 1 if "fault" in answer else 0


def _give_up(_: int, __: object) -> None:
    raise CheckError(f"the check took more than {_ALL_S} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
