"""Sidecar of slurmctld: when the kubelet swaps the files in /etc/slurm, has slurmctld read them, and says how it went: also over HTTP (see
report), and once more when every slurmd that answers has them (see slurmds).

slurmctld takes over a good configuration and keeps its old one when it cannot; jobs run on either way, except where a node or a partition
goes (see plan). It has a copy on the claim, which gets a version only when that may be taken over: else its next start would take what its
reconfigure may not. Until slurmctld has taken a copy, a second link beside it names the one before: whichever starts next, slurmctld's
program or this one, goes back to that. Where slurmds end over files that slurmctld has taken, it gets the copy before again, and these
files are tried once more when the slurmds answer again: they may have gone by chance. `python3 -m programs.config_sync.run`, as SlurmUser.
"""

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from slurm.files import content_hash
from slurm.reasons import SCALE_IN
from slurm.states import is_registered

from . import copies, report, slurm, slurmds
from .plan import ConfigError, Declared, Going, check_config, find_going, find_obstacles, names_in, plan_closing, plan_drains, some
from .report import PORT, Desk, Report
from .slurm import Reading, Refused, SlurmError
from .slurmds import Told

OFFERED = Path("/etc/slurm")
REFUSED = Path("/tmp/refused")  # noqa: S108 - a mount of the container's own
"""While slurmctld refuses the files, its words. The container's probe reads them; each time, the kubelet makes an event of them."""
_AGAIN_S = 2
_REFUSED_S = 60
_PATIENCE_S = 30
_LOOK_S = 0.5
"""Seconds between two looks at what the kubelet has brought."""


class Waiting(Exception):
    """slurmctld may not take the files now; the text says what they wait for."""


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
        self._closed_partitions: set[str] = set()
        self._closed_nodes: list[str] = []
        self._said = ""

    def tell(self, text: str) -> None:
        """Says it, unless it was the last thing said."""
        if text != self._said:
            sys.stderr.write(f"config-sync: {text}\n")
            sys.stderr.flush()
        self._said = text

    def attempt(self, version: Path) -> float | None:
        """Takes the files of a version over if that may be; gives None then, else the seconds until the next attempt."""
        self._told = None
        files = _hash(version)
        try:
            copies.go_back()  # a run that was killed in the middle may have left files that not even Slurm's commands can read
        except OSError as error:
            self.tell(f"{copies.BEFORE} cannot be taken back; trying again ({error})")
            return _AGAIN_S
        if (good := copies.find_good(files)) is not None and not self._takes_second_chance(files):
            return self._give_back(files, good, "slurmds ended over these files when they were tried")
        try:
            reading = self._judge(version)
        except Waiting as waiting:
            note_refusal(None)
            self._desk.report = Report(files, report.WAITING, f"slurmctld keeps the files it has; these wait for: {waiting}")
            self.tell(f"slurmctld keeps the files it has; those of {version} wait for: {waiting}")
            return _AGAIN_S
        try:
            reading.check_age()
            told_at = time.time()
            self._previous = copies.take_over(version)
        except Refused as refusal:
            # Its own log says which line. Once more each minute, should the fault be elsewhere (a name that does not resolve yet).
            closed = self._open()
            words = f"slurmctld refused Slurm's changed files and runs with the old ones: {refusal}"
            self._desk.report = Report(files, report.REFUSED, words)
            note_refusal(words)
            self.tell(f"REFUSED: slurmctld keeps its old configuration, the files of {version} are no good: {refusal}{closed}")
            return _REFUSED_S
        except (OSError, SlurmError) as error:
            closed = self._open()
            if self._desk.report.state != report.REFUSED or self._desk.report.files != files:
                self._desk.report = Report(files, report.WAITING, f"slurmctld keeps the files it has; these wait for: its answer ({error})")
            self.tell(f"slurmctld does not answer yet; trying until it does ({error}){closed}")
            return _AGAIN_S
        note_refusal(None)
        self.tell(f"slurmctld runs with the files of {version}")
        self._desk.report = Report(files, report.SPREADING, "slurmctld runs with these files; slurmds take them now")
        answered = frozenset(name for name in reading.starts if is_registered(reading.nodes[name]))
        self._told = Told(told_at, reading.starts, answered=answered)
        self._taken_at = self._look_at = time.monotonic()
        self._closed_partitions.clear()
        self._closed_nodes.clear()
        return None

    def look(self) -> float | None:
        """Looks which slurmds have the files that slurmctld has taken, once that is due, and has slurmctld tell them again if need be.

        Gives the seconds until the files are to be tried again where slurmctld had to be given those before.
        """
        now = time.monotonic()
        if self._told is None or now < self._look_at:
            return None
        age_s = now - self._taken_at
        self._look_at = now + slurmds.look_after_s(age_s)
        try:
            found = slurm.read_slurmds()
            told = self._told = slurmds.note_done(found, self._told)
            behind, silent = slurmds.find_behind(found, told), slurmds.find_silent(found, told)
            lost = slurmds.find_lost(found, told)
            how_far = slurmds.describe(behind, len(slurmds.find_awaited(found)), silent)
            is_late = slurmds.is_late(told, time.time())
            if is_late and slurmds.are_files_at_fault(lost, told) and self._may_give_back():
                self._told = None
                where = f"Read the log of {lost[0]}: container slurmd of its pod"
                why = f"{len(lost)} slurmds that had answered ended over these files, or fell silent: {some(lost)}. {where}"
                if self._chance[0] != self._desk.report.files:
                    self._chance = self._desk.report.files, frozenset(lost)
                return self._give_back(self._desk.report.files, self._previous, why)
            if slurmds.is_to_be_told_again(behind, told, time.time()):
                self.tell(f"slurmctld tells all slurmds again; {how_far}")
                told = self._told = slurmds.tell_again(found, told, time.time())
                is_late = False
                slurm.reconfigure()
        except SlurmError as error:
            self.tell(f"which slurmds have the files is not known yet ({error})")
            return None
        words = f"slurmctld runs with these files; {how_far}"
        if behind and is_late:
            words += f". Read the log of {behind[0]}: container slurmd of its pod. A slurmd that is started again takes the files"
        has_all = not behind and (is_late or not lost)
        state = report.LIVE if has_all else report.BEHIND if is_late else report.SPREADING
        if state != report.SPREADING and state != self._desk.report.state:
            self.tell(f"{words} ({age_s:.1f} s after slurmctld)")
        self._desk.report = Report(self._desk.report.files, state, words)
        if has_all:
            self._previous = None
            copies.remove_other_copies(copies.ACCEPTED.readlink().name)
            copies.BAD.unlink(missing_ok=True)
        if not behind and not silent:
            self._told = None
        return None

    def _takes_second_chance(self, files: str) -> bool:
        """True once, when all slurmds that were lost over files answer again."""
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

    def _may_give_back(self) -> bool:
        """Whether slurmctld may have the copy before again: not where that would take a node or a partition away."""
        if self._previous is None:
            return False
        try:
            _, going, _ = _look(_read_declared(self._previous))
        except Waiting:
            return False
        return not going.nodes and not going.partitions

    def _give_back(self, files: str, good: Path | None, why: str) -> float:
        """Has slurmctld run with a copy from before; gives the seconds until it is looked at again. May be cut off and repeated."""
        if good is None:
            return _REFUSED_S
        words = f"slurmctld runs with the files before again: {why}"
        try:
            copies.note_bad(files, good)
            if copies.ACCEPTED.readlink() != Path(good.name) or self._desk.report.state != report.REFUSED:
                copies.point(copies.ACCEPTED, good.name)
                slurm.reconfigure()
        except (OSError, SlurmError) as error:
            self.tell(f"slurmctld could not be given the files before: {error}")
            return _AGAIN_S
        note_refusal(words)
        self._desk.report = Report(files, report.REFUSED, words)
        self.tell(f"REFUSED: {words}")
        return _REFUSED_S

    @property
    def pause_s(self) -> float:
        """Seconds until this program is to look around again."""
        return min(_LOOK_S, max(0.0, self._look_at - time.monotonic())) if self._told else _LOOK_S

    def _judge(self, version: Path) -> Reading:
        """Closes what goes; gives the reading by which slurmctld may take the files. Raises Waiting."""
        declared = _read_declared(version)
        reading, going, obstacles = _look(declared)
        if not going.nodes and not going.partitions:
            return reading
        try:
            for name in plan_closing(going):
                reading.check_age()
                self._closed_partitions.add(name)
                slurm.close_partition(name)
            reading, going, obstacles = _look(declared)
            if obstacles:
                raise Waiting(some(obstacles))
            if idle := plan_drains(going):
                reading.check_age()
                self._closed_nodes = idle
                slurm.drain(idle, SCALE_IN)
            reading, _, obstacles = _look(declared)
            if obstacles:
                raise Waiting(some(obstacles))
        except SlurmError as error:
            self._open_nodes()
            raise Waiting(f"an answer of slurmctld ({error})") from None
        except Waiting:
            self._open_nodes()
            raise
        return reading

    def _open(self) -> str:
        """Takes back what was closed. What could not be, as the end of a sentence; "" if nothing is left closed."""
        self._open_nodes()
        for name in sorted(self._closed_partitions):
            try:
                slurm.open_partition(name)
                self._closed_partitions.discard(name)
            except SlurmError:
                continue
        return f"; partitions still closed: {some(sorted(self._closed_partitions))}" if self._closed_partitions else ""

    def _open_nodes(self) -> None:
        if self._closed_nodes:
            try:
                slurm.undrain(self._closed_nodes)
                self._closed_nodes = []
            except SlurmError as error:
                self.tell(f"the drain of {some(self._closed_nodes)} is not lifted yet: {error}")


def _hash(version: Path) -> str:
    """What the files are called by; empty when they cannot be read, which is found again when they are judged."""
    try:
        return content_hash({file.name: file.read_bytes() for file in version.iterdir() if not file.name.startswith("..")})
    except OSError:
        return ""


def _read_declared(version: Path) -> Declared:
    """What the files declare. A file that cannot be read is a fault, never one without nodes. Raises Waiting."""
    try:
        text = (version / "slurm.conf").read_text()
        check_config(text)
        return Declared(slurm.expand(names_in(text, "NodeName")), slurm.expand(names_in(text, "PartitionName")))
    except (ConfigError, OSError, UnicodeDecodeError, SlurmError) as error:
        raise Waiting(f"names of nodes and partitions that can be read ({error})") from None


def _look(declared: Declared) -> tuple[Reading, Going, list[str]]:
    """A reading, what goes by it, and what that waits for. Raises Waiting."""
    try:
        reading = slurm.read()
        going = find_going(reading.nodes, reading.partitions, declared)
        wanted = slurm.expand(job.nodes for job in reading.jobs if job.nodes) if going.nodes else frozenset[str]()
    except SlurmError as error:
        raise Waiting(f"an answer of slurmctld ({error})") from None
    return reading, going, find_obstacles(going, reading.jobs, wanted)


def note_refusal(words: str | None) -> None:
    """Leaves the words of a refusal for the probe, or takes them away. It is a message only: one that cannot be left is in the log."""
    with contextlib.suppress(OSError):
        if words is None:
            REFUSED.unlink(missing_ok=True)
        else:
            REFUSED.write_text(f"{words}\n")


def _version() -> Path:
    """The folder that the files are in now: the kubelet swaps this link last, in one step."""
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
    sync = Sync(desk)
    try:
        desk.serve()
    except OSError as error:
        sync.tell(f"nobody can ask how far the files are: port {PORT} cannot be used ({error})")
    began = time.monotonic()
    # A change between slurmctld's start and ours would be missed: so the first version seen is told as well. It costs milliseconds.
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
        select.select([awake], [], [], sync.pause_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
