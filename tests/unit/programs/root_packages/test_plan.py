"""What a version lacks of the packages that it is to have, and what apt-get's words mean for whoever deploys."""

import pytest

from programs.root_packages.plan import Outcome, Wanted, find_missing, judge, read_wanted

LISTING = "jq installed 1.8.2-1\nr-base config-files 4.5.1-1\nffmpeg half-configured 8:8.0-1\n"


def test_job_says_which_packages_go_where() -> None:
    env = {"SLIPWAY_ROOT_VERSION": "2026-11", "SLIPWAY_ROOT_PACKAGES": "jq r-base=4.5.1-1"}
    assert read_wanted(env) == Wanted("2026-11", ("jq", "r-base=4.5.1-1"))


@pytest.mark.parametrize(
    ("packages", "missing"),
    [
        pytest.param(["jq"], [], id="installed"),
        pytest.param(["r-base"], ["r-base"], id="removed-but-for-its-settings"),
        pytest.param(["ffmpeg"], ["ffmpeg"], id="install-was-killed"),
        pytest.param(["ninja"], ["ninja"], id="unknown-to-dpkg"),
        pytest.param(["jq=1.8.2-1"], [], id="in-the-named-version"),
        pytest.param(["jq=1.9-1", "ninja"], ["jq=1.9-1", "ninja"], id="in-another-version"),
    ],
)
def test_package_is_missing_unless_it_is_whole_and_in_the_named_version(packages: list[str], missing: list[str]) -> None:
    assert find_missing(packages, LISTING) == missing


@pytest.mark.parametrize(
    ("said", "outcome", "why"),
    [
        pytest.param("E: Unable to locate package jqq\nE: Unable to locate package x", Outcome.REFUSED, "package jqq, x", id="unknown"),
        pytest.param("E: Package 'editor' has no installation candidate", Outcome.REFUSED, "package editor", id="virtual"),
        pytest.param("E: Version '9' for 'jq' was not found", Outcome.REFUSED, "has version 9 of jq", id="version"),
        pytest.param("E: Write error - write (28: No space left on device)", Outcome.AGAIN, "volume is full", id="full"),
        pytest.param("Err:1 http://a.test\nE: Failed to fetch http://a.test", Outcome.AGAIN, "Failed to fetch http://a.test", id="outage"),
        pytest.param("", Outcome.AGAIN, "apt-get gave 100: see above", id="silent"),
    ],
)
def test_only_what_no_archive_has_is_refused_for_good(said: str, outcome: Outcome, why: str) -> None:
    found, sentence = judge(100, said, "1")
    assert found is outcome
    assert why in sentence


def test_install_that_worked_needs_no_words() -> None:
    assert judge(0, "E: in a package's own words", "1") == (Outcome.DONE, "")
