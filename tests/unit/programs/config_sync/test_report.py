"""What the sidecar answers to whoever asks how far the files are."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from programs.config_sync.report import LIVE, Desk, Report, find_keys
from slurm.files import content_hash
from tests.support.patience import patience


def test_latest_report_is_given_and_nothing_else() -> None:
    desk = Desk()
    server = desk.serve(0)
    try:
        url = f"http://127.0.0.1:{server.ports[0]}"
        desk.report = Report("ab12", LIVE, "all have them", "a-0")
        with urllib.request.urlopen(f"{url}/files", timeout=5 * patience()) as answer:
            assert json.load(answer) == {"files": "ab12", "state": "live", "message": "all have them", "held": "a-0", "keys": {}}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/etc/slurm/slurm.conf", timeout=5 * patience())
    finally:
        server.close()


def test_age_of_a_key_is_that_of_its_note(tmp_path: Path) -> None:
    """programs/slurmctld writes it when slurmctld starts with another key, and only then."""
    note = tmp_path / "conf.munge-key"
    note.write_text("ab12\n")
    os.utime(note, (1000, 1000))
    assert find_keys(tmp_path) == {"munge": 1000}


def test_files_are_named_by_all_of_their_content() -> None:
    files = {"slurm.conf": b"ab", "gres.conf": b"c"}
    same = {"gres.conf": b"c", "slurm.conf": b"ab"}
    others = [{"slurm.conf": b"ab"}, {"slurm.conf": b"a", "gres.conf": b"bc"}, {"slurm.conf": b"ab", "gres.con": b"fc"}, {}]
    assert content_hash(files) == content_hash(same)
    assert len({content_hash(each) for each in (files, *others)}) == 5
