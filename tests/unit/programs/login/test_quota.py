"""What a login says of quotas. The reports are quota(1) 4.11's own words on ext4 with quotas, of which this machine's kernel has none."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from programs.login import quota
from programs.login.quota import Figures, Mount, Quota
from tests.support.patience import patience

_HEAD = """\
Disk quotas for user #10001 (uid 10001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
"""
BELOW = f"{_HEAD}          /home    2931    5000   10000       0       2     100     200       0\n"
ABOVE = f"{_HEAD}          /home    6838*   5000   10000 1796060249       3     100     200       0\n"
NONE = "Disk quotas for user #10002 (uid 10002): none\n"
HOME_4 = "40 30 0:50 / /home rw,relatime shared:1 - nfs4 filer:/export/home rw,vers=4.2\n"
NO_LIMIT = Figures(5, 0, 0, 0)
TOOL = """\
#!/bin/sh
{}
"""


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(BELOW, Quota(Figures(2931 * 1024, 5_120_000, 10_240_000, 0), Figures(2, 100, 200, 0)), id="below"),
        pytest.param(ABOVE, Quota(Figures(6838 * 1024, 5_120_000, 10_240_000, 1796060249), Figures(3, 100, 200, 0)), id="above-soft"),
        pytest.param(
            BELOW.replace("/home", "/home of all"), Quota(Figures(3001344, 5120000, 10240000, 0), Figures(2, 100, 200, 0)), id="blanks"
        ),
        pytest.param(NONE, None, id="none"),
        pytest.param("", None, id="silence"),
        pytest.param(_HEAD, None, id="head-alone"),
    ],
)
def test_report_of_the_tool_is_read(report: str, expected: Quota | None) -> None:
    assert quota.read_report(report) == expected


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        pytest.param(quota.read_report(BELOW), "Your home: 2.9 MiB of 9.8 MiB, 2 of 200 files used.\n", id="below"),
        pytest.param(
            quota.read_report(ABOVE),
            "Your home: 6.7 MiB of 9.8 MiB, 3 of 200 files used. Above 4.9 MiB, nothing can be written from 2026-11-30 17:37 UTC on:"
            " delete files before then.\n",
            id="above-soft",
        ),
        pytest.param(
            Quota(NO_LIMIT, Figures(120, 100, 200, 1_700_000_000)),
            "Your home: 120 of 200 files used. It was above 100 files for too long: nothing can be written until files are deleted.\n",
            id="too-long-above",
        ),
        pytest.param(Quota(Figures(3 << 30, 20 << 30, 0, 0), NO_LIMIT), "Your home: 3.0 GiB of 20.0 GiB used.\n", id="soft-alone"),
        pytest.param(Quota(Figures(0, 0, 5 << 50, 0), NO_LIMIT), "Your home: 0.0 KiB of 5120.0 TiB used.\n", id="empty-and-huge"),
        pytest.param(Quota(NO_LIMIT, NO_LIMIT), "", id="no-limits"),
        pytest.param(None, "", id="no-quota"),
    ],
)
def test_line_says_used_and_limit_or_nothing(figures: Quota | None, line: str) -> None:
    assert quota.render(figures, now_s=1796000000) == line


@pytest.mark.parametrize(
    ("mounts", "folder", "expected"),
    [
        pytest.param("30 1 8:1 / / rw - overlay overlay rw\n" + HOME_4, "/home/alice", Mount("/home", "nfs4"), id="inside"),
        pytest.param("30 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + HOME_4, "/homes/alice", Mount("/", "ext4"), id="a-longer-name"),
        pytest.param(HOME_4 + "41 40 8:2 /x /home ro - xfs /dev/sdb rw\n", "/home/a", Mount("/home", "xfs"), id="mounted-over"),
        pytest.param("42 1 8:1 / /ho\\040me rw - ext4 /dev/sda1 rw\n", "/ho me/a", Mount("/ho me", "ext4"), id="blank-in-the-name"),
        pytest.param("", "/home/alice", None, id="none"),
    ],
)
def test_mount_of_a_home_is_found_without_asking_its_server(mounts: str, folder: str, expected: Mount | None) -> None:
    assert quota.find_mount(mounts, folder) == expected


def stand_on(monkeypatch: pytest.MonkeyPatch, point: str, kind: str) -> None:
    """Homes are on such a mount."""

    def find(mounts: str, folder: str) -> Mount:
        assert mounts, folder
        return Mount(point, kind)

    monkeypatch.setattr(quota, "find_mount", find)


def put_tool(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `quota` in place of Debian's: no kernel here mounts NFS, and so the real one finds nothing to ask for."""
    folder.chmod(0o755)
    tool = folder / "quota"
    tool.write_text(TOOL.format(script))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    stand_on(monkeypatch, "/home", "nfs4")


def test_server_is_asked_for_the_mount_of_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_tool(tmp_path, monkeypatch, f"echo \"$@\" >{tmp_path}/asked; cat <<'END'\n{BELOW}END\n")
    said = quota.describe("/home/alice", os.geteuid(), os.getegid(), tmp_path / "silent", time.time())
    assert said.startswith("Your home: 2.9 MiB of 9.8 MiB")
    assert (tmp_path / "asked").read_text() == "--no-wrap --raw-grace --show-mntpoint --hide-device -f /home\n"
    assert not (tmp_path / "silent").exists()


def test_silent_server_delays_one_login_by_the_deadline_and_no_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool's child keeps the pipe open, as a process that hangs on a mount and cannot be killed does."""
    put_tool(tmp_path, monkeypatch, f"touch {tmp_path}/asked; read never <{tmp_path}/fifo & echo $! >{tmp_path}/child; wait")
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setattr(quota, "DEADLINE_S", 0.5 * patience())
    arguments = ("/home/alice", os.geteuid(), os.getegid(), tmp_path / "silent")
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        quota.describe(*arguments, time.time())
    assert time.monotonic() - began < 5 * patience()
    os.close(os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK))  # a writer lets the child go
    (tmp_path / "asked").unlink()
    assert quota.describe(*arguments, time.time()) == ""
    assert not (tmp_path / "asked").exists()
    with pytest.raises(subprocess.TimeoutExpired):
        quota.describe(*arguments, time.time() + quota.SILENT_FOR_S + 1)
    assert (tmp_path / "asked").exists()
    os.close(os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK))


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_file_system_without_quotas_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    stand_on(monkeypatch, str(tmp_path), kind)
    assert quota.describe("/home/alice", os.geteuid(), os.getegid(), tmp_path / "silent", time.time()) == ""


def test_file_system_that_has_no_such_quotas_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_on(monkeypatch, "/not/there", "fuse.weka")
    assert quota.describe("/home/alice", os.geteuid(), os.getegid(), tmp_path / "silent", time.time()) == ""
