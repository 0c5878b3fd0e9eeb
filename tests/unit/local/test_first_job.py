"""The last steps of `make up`: the first jobs, and what the root gets of the machine before them."""

from pathlib import Path

import pytest

from local.first_job import FirstJobError, Login, run_jobs, send_settings

SETTINGS = {"etc/pip.conf": "[global]\nproxy = a\n", "usr/local/share/ca-certificates/own/ca.crt": "PEM"}


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Login:
    """Of a user whose ssh is the program `ssh` in the test's folder."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Login("127.0.0.1", 22, "alice", tmp_path / "key")


def ssh(login: Login, script: str) -> None:
    program = login.key.parent / "ssh"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)


def test_first_jobs_that_wait_end_in_a_sentence_and_stay_in_the_queue(login: Login) -> None:
    """Nodes that are busy with other users' jobs, for instance."""
    ssh(login, "exec sleep 60")
    with pytest.raises(FirstJobError, match=r"^the first jobs did not end within 1 s\. They stay in the queue; `squeue --me` says"):
        run_jobs(login, timeout_s=1)


def test_settings_get_into_the_root_by_sudo_and_new_certificates_are_trusted(login: Login) -> None:
    folder = login.key.parent
    ssh(login, f'echo "${{@: -1}}" > {folder}/asked; tar --extract --directory={folder}')
    is_done, said = send_settings(login, SETTINGS)
    assert (is_done, said) == (
        True,
        "the root has this machine's settings: /etc/pip.conf, /usr/local/share/ca-certificates/own/ca.crt",
    )
    assert {path: (folder / path).read_text() for path in SETTINGS} == SETTINGS
    asked = (folder / "asked").read_text()
    assert asked == "sudo -n tar --extract --no-overwrite-dir --directory=/ && sudo -n update-ca-certificates >/dev/null\n"


def test_user_who_is_no_admin_is_told_why_the_settings_are_not_there(login: Login) -> None:
    ssh(login, "echo first >&2; echo 'sudo: a password is required' >&2; exit 1")
    assert send_settings(login, SETTINGS) == (
        False,
        "the settings of this machine did not get into the root: sudo: a password is required",
    )


def test_machine_without_settings_asks_nobody(login: Login) -> None:
    assert send_settings(login, {}) == (True, "")
