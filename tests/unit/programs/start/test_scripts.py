"""Start scripts as a whole, with stand-ins for Slurm's programs: what cannot be read is a failure, never an empty answer."""

import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[4] / "programs" / "start"
STUBS = """
id() { echo 64030; }
slurmctld() { echo slurm 26.05; }
munge() { exit 9; }
"""


def slurmctld(folder: Path) -> subprocess.CompletedProcess[str]:
    """slurmctld.sh until it asks munged (exit code 9), with its folders below `folder`."""
    text = (SCRIPTS / "slurmctld.sh").read_text()
    for place in ("/etc/slurm", "/run/slurm", "/etc/slipway"):
        text = text.replace(f"{place}/", f"{folder}{place}/").replace(f"run={place}\n", f"run={folder}{place}\n")
    (folder / "etc/slurm").mkdir(parents=True)
    (folder / "etc/slurm/slurm.conf").write_text(f"StateSaveLocation={folder}/claim/state\n")
    (folder / "claim").mkdir(exist_ok=True)
    return subprocess.run(["bash", "-c", STUBS + text], capture_output=True, text=True, check=False, timeout=60)


def test_first_start_takes_the_files_of_the_config_map(tmp_path: Path) -> None:
    done = slurmctld(tmp_path)
    assert done.returncode == 9, done.stderr
    assert (tmp_path / "claim/conf/slurm.conf").read_text().startswith("StateSaveLocation=")


def test_start_after_a_kill_in_mid_change_is_with_the_files_before(tmp_path: Path) -> None:
    """slurmctld may have refused those that the link names; programs/config_sync made the note."""
    claim = tmp_path / "claim"
    for name in ("conf.start", "conf.bad"):
        (claim / name).mkdir(parents=True)
        (claim / name / "slurm.conf").write_text(name)
    (claim / "conf").symlink_to("conf.bad")
    (claim / "conf.before").symlink_to("conf.start")
    done = slurmctld(tmp_path)
    assert done.returncode == 9, done.stderr
    assert (claim / "conf/slurm.conf").read_text() == "conf.start"
    assert not (claim / "conf.before").is_symlink()
    assert "it starts with those before, conf.start" in done.stderr


@pytest.mark.parametrize("name", ["conf", "conf.munge-key"])
def test_copy_that_cannot_be_read_is_not_a_missing_one(tmp_path: Path, name: str) -> None:
    """The ConfigMap's files may take nodes away that run jobs; a new munge key may not be everybody's yet."""
    (tmp_path / "claim").mkdir()
    (tmp_path / "claim" / name).symlink_to(name)  # a link to itself: also root cannot read that
    text = (SCRIPTS / "slurmctld.sh").read_text()
    if name == "conf":
        done = slurmctld(tmp_path)
        assert done.returncode == 1
        assert "the configuration that slurmctld had, cannot be read" in done.stderr
    else:
        at, end = text.index("is_missing()"), text.index("start_slurmctld() {")
        functions = text[at : text.index("\n", at)] + text[text.index("await_key_elsewhere()") - 1 : end]
        head = f"set -euo pipefail; say() {{ echo $*; }}; key_id() {{ echo x; }}; accepted={tmp_path}/claim/conf; stopping=\n"
        script = f"{head}{functions}\nawait_key_elsewhere"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        assert "which munge key slurmctld had is unknown" in done.stdout


def test_version_whose_users_cannot_be_counted_is_not_unused() -> None:
    """In a condition, a shell goes on after a failure: a count of links that failed was 0, and the version was removed."""
    text = (SCRIPTS / "root-clean.sh").read_text()
    users = next(line for line in text.splitlines() if line.startswith("users()"))
    judged = next(line.strip() for line in text.splitlines() if "is_clear &&" in line)
    assert "$((" not in judged
    script = f"set -euo pipefail; shared=/s; folder=/tmp; version=v; find() {{ return 1; }}; is_clear() {{ :; }}\n{users}\n"
    script += f"{judged.removeprefix('el')}\necho removed; else echo stays; fi"
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60).stdout == "stays\n"


def function(script: str, name: str) -> str:
    """The text of one function of a start script."""
    text = (SCRIPTS / script).read_text()
    at = text.index(f"\n{name}() {{") + 1
    line = text[at : text.index("\n", at)]
    return line if line.endswith("}") else text[at : text.index("\n}\n", at) + 3]


def test_note_of_the_last_slurm_that_cannot_be_read_does_not_make_it_a_new_one(tmp_path: Path) -> None:
    """Of a new Slurm that ends at its start, the ConfigMap's files are taken over, which may end jobs."""
    note = tmp_path / "conf.version"
    functions = function("slurmctld.sh", "is_missing") + "\n" + function("slurmctld.sh", "is_new_slurm")
    script = f"set -euo pipefail; say() {{ echo $*; }}; accepted={tmp_path}/conf; version=26.05\n{functions}\n"
    script += "if is_new_slurm; then echo new; else echo same; fi"

    def said() -> list[str]:
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()

    assert said() == ["new"]
    note.write_text("26.05\n")
    assert said() == ["same"]
    note.write_text("25.11\n")
    assert said() == ["new"]
    note.unlink()
    note.symlink_to(note.name)  # a link to itself: also root cannot read that
    assert said()[-1] == "same"
    assert "which Slurm ran here last is unknown" in said()[0]


def test_munge_key_that_cannot_be_read_is_not_another_one(tmp_path: Path) -> None:
    """slurmctld stops for another key."""
    functions = function("munged.sh", "has_waiting_key")
    script = f"set -euo pipefail; say() {{ echo $*; }}; secret={tmp_path}/secret key={tmp_path}/key unread=''\n{functions}\n"
    script += "for each in 1 2; do if has_waiting_key; then echo other; else echo same; fi; done"

    def said() -> list[str]:
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()

    (tmp_path / "key").write_text("a")
    assert said() == ["same", "same"]
    (tmp_path / "secret").write_text("b")
    assert said() == ["other", "other"]
    (tmp_path / "secret").unlink()
    (tmp_path / "secret").mkdir()  # also root cannot read that
    once, *rest = said()
    assert "cannot be compared" in once
    assert rest == ["same", "same"]


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
