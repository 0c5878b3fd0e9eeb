"""The disk that config_sync keeps slurmctld's files on."""

from pathlib import Path

import pytest

from programs.config_sync import copies, run
from programs.config_sync.copies import BEFORE


@pytest.fixture
def claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """slurmctld's disk, with the files that it runs with, and `new`, a version that is offered."""
    (tmp_path / "conf.start").mkdir()
    (tmp_path / "conf.start/slurm.conf").write_text("old")
    (tmp_path / "conf").symlink_to("conf.start")
    (tmp_path / "new").mkdir()
    (tmp_path / "new/slurm.conf").write_text("new")
    monkeypatch.setattr(copies, "CLAIM", tmp_path)
    monkeypatch.setattr(copies, "ACCEPTED", tmp_path / "conf")
    monkeypatch.setattr(copies, "BEFORE", tmp_path / BEFORE.name)
    monkeypatch.setattr(copies, "BAD", tmp_path / "conf.bad")
    monkeypatch.setattr(run, "REFUSED", tmp_path / "new/..refused")
    return tmp_path
