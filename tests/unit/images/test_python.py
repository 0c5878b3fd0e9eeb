"""What a build hands to pip: how to reach packages, and whom to trust; nothing that only makes sense on this machine."""

import configparser
from pathlib import Path

import pytest

from images import python, store

LISTING = """\
:env:.default-timeout='180'
:env:.index-url='https://env.example/simple'
global.cert='/etc/ssl/mine.pem'
global.extra-index-url='https://one.example/simple\\nhttps://two.example/simple'
global.index-url='https://global.example/simple'
global.cache-dir='/home/me/cache'
global.find-links='/opt/wheels'
install.retries='7'
list.format='columns'
"""


def settings(listing: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    parser.read_string(python.pip_settings(listing))
    return dict(parser["global"])


def test_package_settings_are_carried_but_not_this_machines_paths() -> None:
    assert settings(LISTING) == {
        "timeout": "180",
        "index-url": "https://env.example/simple",
        "extra-index-url": "https://one.example/simple\nhttps://two.example/simple",
        "retries": "7",
    }


def test_machine_without_settings_gives_none() -> None:
    assert settings("") == {}


@pytest.mark.parametrize(
    ("listing", "file"),
    [
        pytest.param(LISTING, "/etc/ssl/mine.pem", id="pips-own"),
        pytest.param("", "/etc/ssl/certs/ca-certificates.crt", id="debians"),
        pytest.param("global.cert='/a.pem'\nglobal.cert='/b.pem'\n", "/b.pem", id="the-last-one-said"),
    ],
)
def test_certificates_are_those_that_pip_trusts(listing: str, file: str) -> None:
    assert python.certificates(listing) == Path(file)


def test_packages_of_the_controllers_are_pinned() -> None:
    lines = (store.FOLDER / "controllers" / "requirements.txt").read_text().splitlines()
    packages = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert packages
    assert [line for line in packages if "==" not in line] == []
