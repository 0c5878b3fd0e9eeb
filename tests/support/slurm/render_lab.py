"""Sets of rendered files, read by the slurmctld of the real image: what it says of them when asked, and what it logs."""

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import seconds
from tests.support.slurm import render_lab_inside

PROJECT = Path(__file__).parents[3]
# What slurmctld says of the machine, of being stopped early and of an asker that hung up, not of what it read.
ELSEWHERE = re.compile(r"error: (High latency for|agent_fini: left|slurm_send_node_msg: .* Unexpected missing socket error$)")


@dataclass(frozen=True)
class Reading:
    """What slurmctld made of one set."""

    folder: Path

    def text(self, name: str) -> str:
        """One of its answers; empty where it ended before it could answer."""
        file = self.folder / name
        return file.read_text(errors="replace") if file.exists() else ""

    @property
    def complaints(self) -> list[str]:
        """Lines of its log that tell of an error, without their time."""
        lines = [line.partition("] ")[2] for line in self.text("log").splitlines()]
        return [line for line in lines if line.startswith(("error:", "fatal:"))]

    @property
    def config(self) -> dict[str, str]:
        """`scontrol show config`, by key."""
        pairs = (line.split("=", 1) for line in self.text("config").splitlines() if "=" in line)
        return {key.strip(): value.strip() for key, value in pairs}

    def records(self, name: str) -> dict[str, dict[str, str]]:
        """`nodes` or `partitions` by their name, each by key."""
        records = [dict(pair.split("=", 1) for pair in line.split() if "=" in pair) for line in self.text(name).splitlines()]
        return {next(iter(record.values())): record for record in records if record}


def read_sets(image_root: Path, work: Path, cluster: str, sets: Mapping[str, Mapping[str, str]]) -> dict[str, Reading]:
    """Has slurmctld read each set in turn. The files of a set are by name; slurmdbd.conf of the first one serves all."""
    for name, files in sets.items():
        (work / "sets" / name).mkdir(parents=True)
        (work / "out" / name).mkdir(parents=True)
        for file, text in files.items():
            (work / "sets" / name / file).write_text(text)
    for folder in (work, *work.parents):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)  # user slurm reads the sets from here
    namespaces = ["unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--kill-child"]
    inside = [sys.executable, "-m", render_lab_inside.__name__, str(image_root), str(work), cluster]
    done = subprocess.run([*namespaces, *inside], cwd=PROJECT, capture_output=True, text=True, timeout=seconds(1500), check=False)
    logs = "\n".join(f"{file.name}: {file.read_text(errors='replace')[-1500:]}" for file in (work / "out").glob("*.log"))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{logs}"
    return {name: Reading(work / "out" / name) for name in sets}
