"""Makes folders that members of an account share: a line of /etc/slipway/login/projects is a path and its group.

Folders that exist stay as they are, also those that are no longer listed. root makes them with mode 2770, in one step.
"""

import contextlib
import grp
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from names import paths
from slurm.records import record

LIST = Path(f"{paths.LOGIN}/projects")
MODE = 0o2770
_TOP_MODE = 0o755


@record
class Project:
    """A folder that is wanted, with the name of its group."""

    path: str
    group: str


@record
class Found:
    """What is at the place of a folder."""

    is_folder: bool
    gid: int
    mode: int
    """Its permission bits."""


@record
class Make:
    """Make this folder for this group."""

    path: str
    gid: int


def read_projects(text: str) -> list[Project]:
    """The wanted folders: a line is `/shared/projects/nlp nlp`, the path and the group."""
    rows = [line.rpartition(" ") for line in text.splitlines() if line]
    return [Project(path, group) for path, _, group in rows]


def plan_projects(wanted: list[Project], found: Mapping[str, Found], gids: Mapping[str, int]) -> tuple[list[Make], list[str]]:
    """What to make, and notes for an administrator. `found` has the folders that exist, `gids` the groups that are known."""
    makes: list[Make] = []
    notes: list[str] = []
    for project in wanted:
        folder, gid = found.get(project.path), gids.get(project.group)
        if gid is None:
            notes.append(f"{project.path} needs group {project.group}, which is unknown here")
        elif folder is None:
            makes.append(Make(project.path, gid))
        elif not folder.is_folder:
            notes.append(f"{project.path} is not a folder. Move it away, and the folder is made")
        elif (folder.gid, folder.mode) != (gid, MODE):
            notes.append(
                f"{project.path} was there before, with group {folder.gid} and mode {folder.mode:o}, and stays so. "
                f"To share it: chgrp -R {project.group} {project.path} && chmod {MODE:o} {project.path}"
            )
    return makes, notes


class Projects:
    """Makes the folders that are missing, and logs each problem once."""

    def __init__(self, say: Callable[[str], None], file: Path = LIST) -> None:
        self._say, self._file = say, file
        self._told: set[str] = set()

    def look(self) -> None:
        """Looks at all folders once. Failures are logged, and tried again at the next look."""
        notes: list[str] = []
        try:
            wanted = read_projects(self._file.read_text(errors="replace"))
            existing = {project.path: folder for project in wanted if (folder := _find(project.path)) is not None}
        except FileNotFoundError:
            wanted, existing = [], {}
        except OSError as error:
            wanted, existing = [], {}
            notes.append(f"the folders of projects are not looked for: {error}")
        makes, more = plan_projects(wanted, existing, _gids({project.group for project in wanted}))
        for make in makes:
            try:
                _make(make)
                self._say(f"made {make.path} for group {make.gid}")
            except (OSError, subprocess.CalledProcessError) as error:
                why = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
                more.append(f"{make.path} cannot be made ({why}). Where the server keeps root out, make it there, with mode {MODE:o}")
        notes += more
        for note in notes:
            if note not in self._told:
                self._say(note)
        self._told = set(notes)


def _find(path: str) -> Found | None:
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return None
    return Found(facts.st_mode & 0o170000 == 0o040000, facts.st_gid, facts.st_mode & 0o7777)


def _gids(names: set[str]) -> dict[str, int]:
    gids: dict[str, int] = {}
    for name in names:
        try:
            gids[name] = grp.getgrnam(name).gr_gid
        except KeyError:
            continue
    return gids


def _make(make: Make) -> None:
    """Makes it under another name first: if this is interrupted, no folder has a wrong mode. Raises OSError, CalledProcessError."""
    above, _, name = make.path.rpartition("/")
    top = _open_top(above)
    new = f".{name}.{os.urandom(4).hex()}"
    try:
        os.mkdir(new, 0o700, dir_fd=top)
        try:
            os.chown(new, 0, make.gid, dir_fd=top, follow_symlinks=False)
            # The kernel clears setgid, unless the process is in the group or has FSETID. Login pods without admins have no FSETID.
            command = ["chmod", f"{MODE:o}", new]
            subprocess.run(command, group=make.gid, cwd=f"/proc/self/fd/{top}", check=True, capture_output=True, text=True)
            os.rename(new, name, src_dir_fd=top, dst_dir_fd=top)
        except (OSError, subprocess.CalledProcessError):
            os.rmdir(new, dir_fd=top)
            raise
    finally:
        os.close(top)


def _open_top(path: str) -> int:
    """Opens the folder of all projects, and makes it if it is missing. Raises OSError if a user could replace a folder in it."""
    with contextlib.suppress(FileExistsError):
        Path(path).mkdir(_TOP_MODE)
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    facts = os.fstat(top)
    if facts.st_uid == 0 and (facts.st_mode & 0o022 == 0 or facts.st_mode & 0o1000):
        return top
    os.close(top)
    raise PermissionError(f"{path} belongs to a user, or others can remove what is in it: give it to root with mode 755")
