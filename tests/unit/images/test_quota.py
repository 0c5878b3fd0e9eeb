"""What a login on a terminal shows of quotas, by the root's own file and programs that answer as Debian's `quota` does."""

import os
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images/root/quota.sh"
SOME = """Disk quotas for user alice (uid 10001):
     Filesystem   space   quota   limit   grace   files   quota   limit   grace
nfs.example.com:/home   4312M   4883M   5120M           51342       0       0
"""
NONE = "Disk quotas for user alice (uid 10001): none\n"


def shown(folder: Path, program: str, *options: str) -> str:
    quota = folder / "quota"
    quota.write_text(f"#!/bin/bash\n{program}\n")
    quota.chmod(0o755)
    command = ["bash", "--norc", "--noprofile", *options, "-c", f". {SCRIPT}; echo prompt"]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.removesuffix("prompt\n")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(f"cat <<'END'\n{SOME}END", SOME, id="quota"),
        pytest.param(f"cat <<'END'\n{SOME}END\nexit 1", SOME, id="over-quota"),
        pytest.param(f"echo '{NONE.strip()}'", "", id="none"),
        pytest.param("echo 'quota: error while getting quota' >&2; exit 1", "", id="server-is-away"),
    ],
)
def test_login_shows_quotas_where_there_are_any(tmp_path: Path, program: str, said: str) -> None:
    assert shown(tmp_path, program, "-i") == said


def test_script_shows_none(tmp_path: Path) -> None:
    assert shown(tmp_path, f"cat <<'END'\n{SOME}END") == ""


def test_silent_file_server_delays_a_login_by_two_seconds_at_most(tmp_path: Path) -> None:
    began = time.monotonic()
    assert shown(tmp_path, "exec sleep 600", "-i") == ""
    assert time.monotonic() - began < 30, "the server would have taken ten minutes"
