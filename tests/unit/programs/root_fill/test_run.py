"""The fill on a folder of its own. With real tars and images it is tests/slurm/test_root_fill.py and test_root_tar.py."""

import errno
import os
import stat
from pathlib import Path

import pytest

from programs.root_fill import place as places
from programs.root_fill import run
from programs.root_fill.plan import Wanted

BEGUN, NOW = "a" * 64, "b" * 64


@pytest.mark.parametrize(("sha256", "stays"), [pytest.param(BEGUN, True, id="the-same-tar"), pytest.param(NOW, False, id="another-tar")])
def test_tar_of_an_earlier_fill_is_used_only_for_the_same_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sha256: str, stays: bool
) -> None:
    """Its digest was right when it got its name, and is not looked at again."""
    for module in (places, run):
        monkeypatch.setattr(module, "SHARED", tmp_path)
    (tmp_path / "filling" / "v" / "bin").mkdir(parents=True)
    wanted = Wanted("v", tar="https://roots.example/root.tar", sha256=sha256)
    run.lock_of("v").write_text(f"tar {BEGUN}\n")
    place = places.Place("v", -1)
    place.tarball.write_text("root a")
    run.forget_another(place, wanted)
    assert (place.tarball.exists(), place.partial.exists()) == (stays, stays)
    assert run.read(run.lock_of("v")) == f"tar {sha256}\n"


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        pytest.param(0o777, 0o755, id="as local provisioners make it"),
        pytest.param(0o1777, 0o755, id="sticky"),
        pytest.param(0o750, 0o750, id="closed more than needed"),
        pytest.param(0o2775, 0o2775, id="open to a group"),
    ],
)
def test_world_writable_volume_is_closed_and_no_other_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, after: int
) -> None:
    given: list[tuple[Path, int, int]] = []

    def chown(path: Path, user: int, group: int) -> None:
        given.append((path, user, group))

    monkeypatch.setattr(os, "chown", chown)
    tmp_path.chmod(mode)
    run.close_to_others(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == after
    assert given == ([] if mode == after else [(tmp_path, 0, 0)])


def test_volume_whose_server_refuses_is_left_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    tmp_path.chmod(0o777)
    run.close_to_others(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o777
    assert "root may not change that (Operation not permitted)" in capfd.readouterr().out


def test_size_that_nobody_can_tell_does_not_fail_the_fill(tmp_path: Path) -> None:
    assert run.size_mib(tmp_path / "gone") == "unknown"
