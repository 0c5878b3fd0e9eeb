"""What the root of a running cluster gets of this machine, through an admin's session."""

from pathlib import Path

from local.settings import send_settings

SETTINGS = {"etc/pip.conf": "[global]\nproxy = a\n", "usr/local/share/ca-certificates/own/ca.crt": "PEM"}


def ssh(folder: Path, script: str) -> list[str]:
    """The command of a session that runs this script instead of what it is asked."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return [str(program), "--"]


def test_settings_reach_the_root_by_sudo_and_new_certificates_are_trusted(tmp_path: Path) -> None:
    folder = tmp_path
    session = ssh(folder, f'echo "${{@: -1}}" > {folder}/asked; tar --extract --directory={folder}')
    is_done, said = send_settings(session, SETTINGS)
    assert (is_done, said) == (
        True,
        "the root has this machine's settings: /etc/pip.conf, /usr/local/share/ca-certificates/own/ca.crt",
    )
    assert {path: (folder / path).read_text() for path in SETTINGS} == SETTINGS
    asked = (folder / "asked").read_text()
    assert asked == "sudo -n tar --extract --no-overwrite-dir --directory=/ && sudo -n update-ca-certificates >/dev/null\n"


def test_user_who_is_no_admin_is_told_why_the_settings_are_not_there(tmp_path: Path) -> None:
    session = ssh(tmp_path, "echo first >&2; echo 'sudo: a password is required' >&2; exit 1")
    assert send_settings(session, SETTINGS) == (
        False,
        "the settings of this machine did not get into the root: sudo: a password is required",
    )


def test_machine_without_settings_asks_nobody() -> None:
    assert send_settings(["/nowhere/ssh"], {}) == (True, "")
