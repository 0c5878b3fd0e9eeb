"""What the start of a session does with files as it finds them; with sshd and cgroups it is tests/slurm/test_login.py."""

import json
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from programs.login import session
from programs.login.session import Session
from tests.support.log_lines import as_words

USER = pwd.getpwuid(os.geteuid()).pw_name
UID = os.geteuid()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login node's folders: cgroups of v2, settings without limits, and no state yet."""
    for name in ("cgroup/v2/users", "settings", "state"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "settings/limits").touch()
    (tmp_path / "environ").write_bytes(b"PATH=/bin\0SLIPWAY_CLUSTER=dev\0")
    monkeypatch.setenv("SLIPWAY_CLUSTER", "")
    for name, path in {"CGROUPS": "cgroup", "SETTINGS": "settings", "STATE": "state", "LOG": "log", "ENVIRONMENT": "environ"}.items():
        monkeypatch.setattr(session, name, tmp_path / path)
    monkeypatch.setenv("PAM_TYPE", "open_session")
    monkeypatch.setenv("PAM_USER", USER)
    return tmp_path


def test_session_joins_its_users_group_with_the_limits_of_now(node: Path) -> None:
    group = node / f"cgroup/v2/users/{UID}"
    for text, most in (("tasks=60\n", "60"), ("", "max")):
        (node / "settings/limits").write_text(text)
        session.main()
        assert (group / "pids.max").read_text() == f"{most}\n"
    assert (group / "cgroup.procs").read_text() == f"{os.getppid()}\n"
    assert not (node / "log").exists()


@pytest.mark.parametrize("limits", [None, "tasks=\n", "tasks=many\n"], ids=["gone", "empty", "words"])
def test_unreadable_limits_are_small_at_first_and_stay_for_later_sessions(
    node: Path, limits: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / "settings/limits").unlink()
    if limits is not None:
        (node / "settings/limits").write_text(limits)
    group = node / f"cgroup/v2/users/{UID}"
    session.main()
    assert (group / "pids.max").read_text() == "100\n"
    assert "cannot be read. Tell an administrator" in capsys.readouterr().out
    (group / "pids.max").write_text("77\n")
    session.main()  # the group has a process now
    assert (group / "pids.max").read_text() == "77\n"
    assert {json.loads(line)["cluster"] for line in (node / "log").read_text().splitlines()} == {"dev"}
    assert as_words((node / "log").read_text()).count(f"slipway-login-session: {USER}: cannot read") == 2


def test_banner_and_state_are_shown_and_broken_state_costs_no_login(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node / "settings/banner").write_text("Welcome\n")
    session.main()
    assert capsys.readouterr().out == "Welcome\n"
    for name, text in {"cluster": "TABLE\n", "jobs": f"{USER} 1 2\n", "read": "1000\n"}.items():
        (node / "state" / name).write_text(text)
    session.main()
    shown = capsys.readouterr().out
    assert shown.startswith("Welcome\nThe cluster as it was ")
    assert "TABLE\nYour jobs: 1 running, 2 waiting." in shown
    (node / "state/read").write_text("nonsense\n")
    session.main()
    assert capsys.readouterr().out == "Welcome\n"
    assert "cannot show the state of the cluster" in (node / "log").read_text()


def test_group_that_cannot_be_made_costs_no_login(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node / "settings/banner").write_text("Welcome\n")
    (node / "cgroup/v2/users").rmdir()
    (node / "cgroup/v2/users").touch()
    session.main()
    assert capsys.readouterr().out == "Welcome\n"
    assert "the session has no limits" in (node / "log").read_text()


def test_user_without_a_number_has_no_limits_and_the_log_says_so(node: Path) -> None:
    Session("nobody-of-this-name").limit(node / "cgroup", 1)
    assert "cannot find the user's number: the session has no limits" in (node / "log").read_text()


def test_end_of_a_session_does_nothing(node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PAM_TYPE", "close_session")
    session.main()
    assert capsys.readouterr().out == ""
    assert not (node / f"cgroup/v2/users/{UID}").exists()


def test_home_comes_after_the_state_and_a_silent_server_costs_no_login(
    node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / "settings/banner").write_text("Welcome\n")

    def tell(*_: object) -> str:
        return "Your home: 1.0 GiB of 2.0 GiB used.\n"

    monkeypatch.setattr(session.quota, "describe", tell)
    session.main()
    assert capsys.readouterr().out == "Welcome\nYour home: 1.0 GiB of 2.0 GiB used.\n"

    def hang(*_: object) -> str:
        raise subprocess.TimeoutExpired("quota", 2)

    monkeypatch.setattr(session.quota, "describe", hang)
    session.main()
    assert capsys.readouterr().out == "Welcome\n"
    assert "no answer about the quota of" in (node / "log").read_text()

    def fail(*_: object) -> str:
        raise FileNotFoundError(2, "No such file or directory", "quota")

    monkeypatch.setattr(session.quota, "describe", fail)
    session.main()
    assert capsys.readouterr().out == "Welcome\n"
    assert "cannot show the quota of home" in (node / "log").read_text()


@pytest.mark.parametrize(
    ("content", "variable", "is_told"),
    [
        pytest.param("ssh-ed25519 AAAA me\n", b"", True, id="keys-that-do-not-count"),
        pytest.param("ssh-ed25519 AAAA me\n", b"SLIPWAY_HOME_KEYS=1\0", False, id="keys-that-count"),
        pytest.param("", b"", False, id="empty-file"),
        pytest.param(None, b"", False, id="no-file"),
    ],
)
def test_keys_at_home_that_do_not_count_are_told(
    node: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, variable: bytes, is_told: bool
) -> None:
    entry = [*pwd.getpwnam(USER)]
    entry[5] = str(node)

    def at_home(_: str) -> pwd.struct_passwd:
        return pwd.struct_passwd(entry)

    monkeypatch.setattr(session.pwd, "getpwnam", at_home)
    (node / ".ssh").mkdir()
    if content is not None:
        (node / ".ssh/authorized_keys").write_text(content)
    (node / "environ").write_bytes(b"PATH=/bin\0" + variable)
    assert ("do not count on this cluster" in Session(USER).home_keys()) == is_told
