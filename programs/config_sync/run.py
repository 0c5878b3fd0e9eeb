"""Sidecar of slurmctld: when the kubelet swaps the files in /etc/slurm, it has slurmctld read them, and reports how far they are.

`python3 -m programs.config_sync.run`, as SlurmUser. docs/explain/slurm-facts.md explains why files wait, why some nodes keep their size,
and when slurmctld gets an earlier copy again.
"""

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from names import paths, ports, variables
from slurm.files import content_hash
from slurm.hostlists import fold
from slurm.logs import teller
from slurm.pump import take_stderr
from slurm.states import is_registered, may_be_removed

from . import copies, report, slurm, slurmds, topology
from .closing import Closing
from .judgement import Waiting, judge_sizes, may_go_back
from .plan import some
from .report import Desk, Report
from .rescue import SLACK_S, Rescue
from .slurm import Reading, Refused, SlurmError
from .slurmds import Told

OFFERED = Path(paths.SLURM)
say = teller("config-sync")
REFUSED = Path("/tmp/refused")  # noqa: S108 - a mount of the container's own
"""While slurmctld refuses the files, its words. The container's probe reads them; each time, the kubelet makes an event of them."""
_AGAIN_S = 2
_REFUSED_S = 60
_PATIENCE_S = 30
_LOOK_S = 0.5
"""Seconds between two looks at what the kubelet has brought."""
_SIZES_S = 2.0
"""Seconds between two looks whether nodes that keep their size are free."""
_RESIZE_S = 5.0
"""Seconds from one change of the files to the next of sizes: each has every slurmd read them."""


class Sync:
    """What one run of the sidecar has closed, told slurmds of, and said."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._told: Told | None = None
        """While slurmds take the files that slurmctld has taken."""
        self._taken_at = self._look_at = 0.0
        self._previous: Path | None = None
        """The copy before the present one, until each slurmd has taken that well."""
        self._chance: tuple[str, frozenset[str]] = "", frozenset()
        """Files that get a second chance, and the nodes that were lost over them; the nodes are empty once it is used."""
        self._held: frozenset[str] = frozenset()
        """Nodes that keep their size, against the files, until no job can be on them."""
        self._held_of = ""
        """The files that slurmctld runs with but for these sizes; empty when no node keeps its size."""
        self._sizes_at = 0.0
        self._closing = Closing(self.tell)
        self._said = ""

    def tell(self, text: str) -> None:
        """Logs a text, unless it was the last one."""
        if text != self._said:
            say(text)
        self._said = text

    def attempt(self, version: Path) -> float | None:
        """Takes the files of a version over if possible. Returns None then, else the seconds until the next attempt."""
        self._told = None
        files = _hash(version)
        try:
            copies.go_back()  # a run that was killed in the middle may have left files that not even Slurm's commands can read
        except OSError as error:
            self.tell(f"{copies.BEFORE} cannot be taken back; trying again ({error})")
            return _AGAIN_S
        if (good := copies.find_good(files)) is not None and not self._takes_second_chance(files):
            why = "slurmds ended over these files when they were tried"
            if may_go_back(good):
                return self._give_back(files, good, why)
            self._hold("", frozenset())
            return self._refuse(files, f"slurmctld keeps the files it has: {why}")
        # If slurmctld runs with these files but for some sizes, the result of another attempt says nothing about the files.
        is_taken = self._held_of == files
        try:
            reading = self._closing.close(version)
            held, instead = judge_sizes(version, reading)
        except Waiting as waiting:
            if not is_taken:
                note_refusal(None)
                self._hold("", frozenset())
                self._desk.report = Report(files, report.WAITING, f"slurmctld keeps the files it has; these wait for: {waiting}")
            self.tell(f"slurmctld keeps the files it has; those of {version} wait for: {waiting}")
            return _AGAIN_S
        forgotten: list[str] = []
        try:
            reading.check_age()
            told_at = time.time()
            forgotten = _forget_places(version, reading)
            self._previous = copies.take_over(version, instead)
        except Refused as refusal:
            if forgotten:
                self.tell(f"slurmctld refused the files of {version} while nodes were placed by those before; trying again ({refusal})")
                return _AGAIN_S
            # Its own log says which line. Once more each minute, should the fault be elsewhere (a name that does not resolve yet).
            closed = self._closing.reopen()
            if is_taken:
                self._sizes_at = time.monotonic() + _REFUSED_S
            else:
                self._hold("", frozenset())
                message = f"slurmctld refused Slurm's changed files and runs with the old ones: {refusal}"
                self._desk.report = Report(files, report.REFUSED, message)
                note_refusal(message)
            self.tell(f"REFUSED: slurmctld keeps its old configuration, the files of {version} are no good: {refusal}{closed}")
            return _REFUSED_S
        except (OSError, SlurmError) as error:
            closed = self._closing.reopen()
            if not is_taken and (self._desk.report.state != report.REFUSED or self._desk.report.files != files):
                self._desk.report = Report(files, report.WAITING, f"slurmctld keeps the files it has; these wait for: its answer ({error})")
            self.tell(f"slurmctld does not answer yet; trying until it does ({error}){closed}")
            return _AGAIN_S
        note_refusal(None)
        self._hold(files, held)
        self.tell(f"slurmctld runs with the files of {version}")
        message = f"slurmctld runs with these files; slurmds take them now{self._words_of_held}"
        self._desk.report = Report(files, report.SPREADING, message, fold(held))
        # The pod of a node that is drained or off may go, whatever the files are.
        answered = frozenset(
            name for name in reading.starts if is_registered(reading.nodes[name]) and not may_be_removed(reading.nodes[name])
        )
        self._told = Told(told_at, reading.starts, answered=answered)
        self._taken_at = self._look_at = time.monotonic()
        self._closing.note_taken()
        return None

    def look(self) -> float | None:
        """Looks, if it is due, which slurmds have the files that slurmctld has taken, and has slurmctld tell them again if necessary.

        Returns the seconds until the files are to be tried again. They are if slurmctld had to get the old ones, or if a node that keeps
        its size is free now.
        """
        now = time.monotonic()
        if self._told is None or now < self._look_at:
            return self._look_at_held(now)
        age_s = now - self._taken_at
        self._look_at = now + slurmds.look_after_s(age_s)
        try:
            slurmds_now = slurm.read_slurmds()
            told = self._told = slurmds.note_done(slurmds_now, self._told)
            behind, silent = slurmds.find_behind(slurmds_now, told), slurmds.find_silent(slurmds_now, told)
            lost = slurmds.find_lost(slurmds_now, told)
            how_far = slurmds.describe(behind, len(slurmds.find_awaited(slurmds_now)), silent)
            is_late = slurmds.is_late(told, time.time())
            if is_late and slurmds.are_files_at_fault(lost, told) and self._previous and may_go_back(self._previous):
                self._told = None
                where = f"Read the log of {lost[0]}: container slurmd of its pod"
                why = f"{len(lost)} slurmds that had answered ended over these files, or fell silent: {some(lost)}. {where}"
                if self._chance[0] != self._desk.report.files:
                    self._chance = self._desk.report.files, frozenset(lost)
                return self._give_back(self._desk.report.files, self._previous, why)
            if slurmds.is_to_be_told_again(behind, told, time.time()):
                self.tell(f"slurmctld tells all slurmds again; {how_far}")
                told = self._told = slurmds.tell_again(slurmds_now, told, time.time())
                is_late = False
                slurm.reconfigure()
        except SlurmError as error:
            self.tell(f"which slurmds have the files is not known yet ({error})")
            return None
        message = f"slurmctld runs with these files; {how_far}{self._words_of_held}"
        if behind and is_late:
            message += f". Read the log of {behind[0]}: container slurmd of its pod. A slurmd that is started again takes the files"
        has_all = not behind and (is_late or not lost)
        state = report.LIVE if has_all else report.BEHIND if is_late else report.SPREADING
        if state != report.SPREADING and state != self._desk.report.state:
            self.tell(f"{message} ({age_s:.1f} s after slurmctld)")
        self._desk.report = Report(self._desk.report.files, state, message, fold(self._held))
        if has_all:
            self._previous = None
            copies.remove_other_copies(copies.ACCEPTED.readlink().name)
            copies.BAD.unlink(missing_ok=True)
        if not behind and not silent:
            self._told = None
        return None

    def _look_at_held(self, now: float) -> float | None:
        """Returns 0 if a node that keeps its size is free by now, so that the files are tried again at once; else None."""
        if not self._held or now < self._sizes_at or now - self._taken_at < _RESIZE_S:
            return None
        self._sizes_at = now + _SIZES_S
        try:
            slurmds_now = slurm.read_slurmds()
        except SlurmError:
            return None
        return 0.0 if any(name not in slurmds_now or may_be_removed(slurmds_now[name].state) for name in self._held) else None

    def _hold(self, files: str, held: frozenset[str]) -> None:
        self._held, self._held_of = held, files if held else ""

    @property
    def _words_of_held(self) -> str:
        """The end of a sentence; empty when no node keeps its size."""
        count = len(self._held)
        nodes = (
            "1 node keeps its size until no job can be on it" if count == 1 else f"{count} nodes keep their size until no job can be there"
        )
        return f"; {nodes}: {some(sorted(self._held))}" if self._held else ""

    def _takes_second_chance(self, files: str) -> bool:
        """True once, when all slurmds that were lost over the files answer again."""
        chosen, lost = self._chance
        if chosen != files or not lost:
            return False
        try:
            if not lost.issubset(slurmds.find_awaited(slurm.read_slurmds())):
                return False
        except SlurmError:
            return False
        self._chance = files, frozenset()
        return True

    def _refuse(self, files: str, message: str) -> float:
        """Reports why slurmctld does not run with the files. Returns the seconds until the next look at them."""
        note_refusal(message)
        self._desk.report = Report(files, report.REFUSED, message)
        self.tell(f"REFUSED: {message}")
        return _REFUSED_S

    def _give_back(self, files: str, good: Path, why: str) -> float:
        """Has slurmctld run with an earlier copy. Returns the seconds until the next look. May be cut off and repeated."""
        self._hold("", frozenset())
        try:
            copies.note_bad(files, good)
            if copies.ACCEPTED.readlink() != Path(good.name) or self._desk.report.state != report.REFUSED:
                _forget_places(good, slurm.read())
                copies.point(copies.ACCEPTED, good.name)
                slurm.reconfigure()
        except (OSError, SlurmError) as error:
            self.tell(f"slurmctld could not be given the files before: {error}")
            return _AGAIN_S
        return self._refuse(files, f"slurmctld runs with the files before again: {why}")

    @property
    def pause_s(self) -> float:
        """Seconds until this program is to look around again."""
        return min(_LOOK_S, max(0.0, self._look_at - time.monotonic())) if self._told else _LOOK_S


def _hash(version: Path) -> str:
    """Identifies the files; empty if they cannot be read, which is found again when they are judged."""
    try:
        return content_hash({file.name: file.read_bytes() for file in version.iterdir() if not file.name.startswith("..")})
    except OSError:
        return ""


def _forget_places(folder: Path, reading: Reading) -> list[str]:
    """Has slurmctld forget the places of nodes with which it would not start beside a topology.yaml. The NodeSet controller places these
    nodes again. Returns them. Raises OSError, SlurmError."""
    nodes = topology.find_misplaced(folder, reading.places)
    if nodes:
        slurm.forget_places(nodes)
    return nodes


def note_refusal(words: str | None) -> None:
    """Writes a refusal for the probe, or removes it. Errors are ignored, as the message is also in the log."""
    with contextlib.suppress(OSError):
        if words is None:
            REFUSED.unlink(missing_ok=True)
        else:
            REFUSED.write_text(f"{words}\n")


def _version() -> Path:
    """The folder of the present files: the kubelet swaps this link last, in one step."""
    link = OFFERED / "..data"
    return link.resolve() if link.exists() else OFFERED


def main() -> int:
    ended: list[int] = []
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)

    def stop(number: int, _: FrameType | None) -> None:
        ended.append(number)

    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):  # process 1 has no default action for signals
        signal.signal(number, stop)
    os.environ |= {"SLURM_CONF": str(copies.ACCEPTED / "slurm.conf"), "LC_ALL": "C"}
    note_refusal(None)
    desk = Desk()
    sync, rescue = Sync(desk), Rescue(say, float(os.environ.get(variables.PROLOG_SLACK_S) or SLACK_S))
    try:
        desk.serve()
    except OSError as error:
        sync.tell(f"nobody can ask how far the files are: port {ports.CONFIG_SYNC} cannot be used ({error})")
    began = time.monotonic()
    # A change between slurmctld's start and ours would be missed: so slurmctld gets the first version seen as well, in milliseconds.
    applied = put_off = None
    again_at = 0.0
    while not ended:
        now = _version()
        if not os.access(copies.CLAIM, os.W_OK) or not os.access(copies.ACCEPTED / "slurm.conf", os.R_OK):
            if time.monotonic() - began >= _PATIENCE_S:
                sync.tell(
                    f"waiting for slurmctld's files in {copies.ACCEPTED}; the claim with slurmctld's state has to be mounted here, too"
                )
        elif now != applied and (now != put_off or time.monotonic() >= again_at):
            wait_s = sync.attempt(now)
            if wait_s is None:
                applied, put_off = now, None
            else:
                put_off, again_at = now, time.monotonic() + wait_s
        elif (wait_s := sync.look()) is not None:
            applied, put_off, again_at = None, now, time.monotonic() + wait_s
        else:
            rescue.look()
        select.select([awake], [], [], sync.pause_s)
    return 0


if __name__ == "__main__":
    take_stderr("config-sync")
    sys.exit(main())
