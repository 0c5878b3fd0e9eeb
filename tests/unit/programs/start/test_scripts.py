"""Start scripts as a whole, with stand-ins for Slurm's programs: what cannot be read is a failure, never an empty answer."""

import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).parents[4] / "programs" / "start"


def test_version_whose_users_cannot_be_counted_is_not_unused() -> None:
    """In a condition, a shell goes on after a failure: a count of links that failed was 0, and the version was removed."""
    text = (SCRIPTS / "root-clean.sh").read_text()
    users = next(line for line in text.splitlines() if line.startswith("users()"))
    judged = next(line.strip() for line in text.splitlines() if "is_clear &&" in line)
    assert "$((" not in judged
    script = f"set -euo pipefail; shared=/s; folder=/tmp; version=v; find() {{ return 1; }}; is_clear() {{ :; }}\n{users}\n"
    script += f"{judged.removeprefix('el')}\necho removed; else echo stays; fi"
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60).stdout == "stays\n"


def test_damaged_note_of_an_unused_version_is_not_an_old_one(tmp_path: Path) -> None:
    for folder in ("versions/v1", "versions/v2", "jobs", "filling", "sources"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "current").symlink_to("versions/v2")
    mark = tmp_path / "sources/v1.unused"
    text = (SCRIPTS / "root-clean.sh").read_text().replace("shared=/shared", f"shared={tmp_path}")
    stubs = 'squeue() { :; }; timeout() { shift; "$@"; }; sleep() { :; }; id() { echo 64030; }\n'
    environment = {"PATH": "/usr/bin:/bin", "SLIPWAY_ROOT_VERSIONS": "v2", "SLIPWAY_ROOT_KEEP_DAYS": "7", "SLIPWAY_SLURMCTLD": "s"}

    def clean() -> str:
        done = subprocess.run(["bash", "-c", stubs + text], env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stderr

    for damaged in ("17x\n", "17\n", "0899\n"):
        mark.write_text(damaged)
        assert "its days are counted from now on" in clean()
        assert (tmp_path / "versions/v1").is_dir()
        assert "for 7 more days" in clean()
    mark.write_text("1700000000\n")
    assert "version v1 is removed" in clean()
