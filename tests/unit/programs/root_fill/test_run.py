"""The fill on a folder of its own. With real tars and images it is tests/slurm/test_root_fill.py and test_root_tar.py."""

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


def test_size_that_nobody_can_tell_does_not_fail_the_fill(tmp_path: Path) -> None:
    assert run.size_mib(tmp_path / "gone") == "unknown"
