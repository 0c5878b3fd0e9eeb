"""slurmdbd.conf as it is written before slurmdbd starts."""

from pathlib import Path

import pytest

from programs.database import client, run


def test_password_file_is_private_and_the_password_may_be_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PASSWORD", tmp_path / "password")
    monkeypatch.setattr(run.os, "geteuid", lambda: 64030)
    (tmp_path / "password").write_bytes(b"s\xe9same\n")
    (tmp_path / "given").write_text("DbdHost=dev\n")
    written = tmp_path / "slurmdbd.conf"
    written.write_text("an earlier one\n")
    written.chmod(0o644)
    run.write_slurmdbd_conf(tmp_path / "given", written)
    assert written.read_bytes() == b"DbdHost=dev\n\nStoragePass=s\xe9same\n"
    assert written.stat().st_mode & 0o777 == 0o600
