"""nfs-ganesha, with its data and what it remembers of its clients on the claim in /srv/nfs. `python3 -m programs.nfs_server.run`, as root.

Makes the exported folders (settings.py), and users' homes, which no login could: their export squashes root. Then it
becomes ganesha, which gets the pod's signals itself; a child goes on making homes, and ends with the container.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from names import paths, variables
from slurm.logs import teller

from .plan import Home, missing_folders, missing_homes
from .settings import Folder, from_text

DATA = Path(paths.NFS_DATA)
PASSWD = Path(f"{paths.USERS}/passwd")
SKELETON = Path("/etc/skel")
LOOK_S = 3
_GANESHA = ("ganesha.nfsd", "-F", "-x", "-f", f"{paths.NFS}/ganesha.conf", "-p", "/run/ganesha.pid", "-L", "STDERR")

say = teller("nfs-server")


def make_folders(declared: Iterable[Folder], data: Path) -> None:
    """Makes the declared folders that are missing, and ganesha's own. Raises OSError."""
    for folder in missing_folders(declared, {each.name for each in data.iterdir() if each.is_dir()}):
        _make_folder(folder, data)
        say(f"made /{folder.name}")
    own = data / ".ganesha"
    own.mkdir(exist_ok=True)
    own.chmod(0o700)


def _make_folder(folder: Folder, data: Path) -> None:
    new = data / ".new"
    _remove(new)
    new.mkdir()
    new.chmod(folder.mode)
    new.rename(data / folder.name)  # when it is whole: if the program is killed before, no folder has a wrong mode


class Homes:
    """Makes the homes of users who have none, and says each failure once."""

    def __init__(self, data: Path, passwd: Path = PASSWD, skeleton: Path = SKELETON) -> None:
        self._homes, self._new, self._passwd, self._skeleton = data / "home", data / ".home", passwd, skeleton
        self._told = ""

    def look(self) -> None:
        """Makes every missing home. A home that cannot be made keeps no other user waiting."""
        failures: list[str] = []
        try:
            present = os.listdir(self._homes)  # noqa: PTH208 - names are all that is asked for
            missing = missing_homes(self._passwd.read_text(encoding="utf-8", errors="replace"), set(present))
        except OSError as error:
            failures.append(f"homes are not looked for: {error}")
            missing = []
        for home in missing:
            try:
                self._make(home)
            except OSError as error:
                failures.append(f"no home for {home.name}: {error}")
            else:
                say(f"made the home of {home.name}")
        told = "; ".join(failures)
        if told and told != self._told:
            say(f"{told}. Trying again every {LOOK_S} s")
        self._told = told

    def _make(self, home: Home) -> None:
        _remove(self._new)
        shutil.copytree(self._skeleton, self._new, symlinks=True)
        self._new.chmod(0o700)
        for folder, folders, files in os.walk(self._new):
            for name in (*folders, *files):
                os.chown(Path(folder, name), home.uid, home.gid, follow_symlinks=False)
        os.chown(self._new, home.uid, home.gid)
        self._new.rename(self._homes / home.name)

    def keep(self) -> None:
        """Goes on making homes for ever."""
        while True:
            time.sleep(LOOK_S)
            self.look()


def _remove(path: Path) -> None:
    """Removes what a killed run left."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main() -> None:
    try:
        make_folders(from_text(os.environ[variables.FOLDERS]), DATA)
    except OSError as error:
        say(f"FAILED: the exported folders cannot be made: {error}")
        raise SystemExit(1) from None
    if (DATA / "home").is_dir():
        homes = Homes(DATA)
        homes.look()
        if os.fork() == 0:
            homes.keep()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so
    os.execvp(_GANESHA[0], _GANESHA)  # noqa: S606 - it is to be this very process


if __name__ == "__main__":
    main()
