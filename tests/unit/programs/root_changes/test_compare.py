"""What counts as a change of a root, and how it is written down: manifests with any name, packages apart from files, words for people."""

# ruff: noqa: E501 - a table reads best with a row on a line

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.root_changes.compare import compare
from programs.root_changes.picture import Entry, ManifestError, Picture, differences, read_manifest, shown, write_manifest
from programs.root_changes.report import MOST_LINES, as_text, grouped, human
from programs.root_changes.rules import is_made
from tests.unit.programs.root_changes.pictures import FILE, FOLDER, PICTURES, picture


@given(PICTURES)
def test_manifest_gives_back_what_was_written_whatever_the_names_are(made: Picture) -> None:
    assert read_manifest(write_manifest(made)) == made


@given(PICTURES, st.integers(1, 200))
def test_manifest_that_was_cut_off_is_none(made: Picture, less: int) -> None:
    whole = write_manifest(made)
    with pytest.raises(ManifestError):
        read_manifest(whole[:-less])


@given(PICTURES)
def test_root_beside_its_own_manifest_was_not_changed(made: Picture) -> None:
    changes = compare(made, made)
    assert not any((changes.packages, changes.added, changes.changed, changes.gone, changes.accounts))


@given(PICTURES, PICTURES)
def test_changed_path_is_reported_once_or_belongs_to_a_changed_package(base: Picture, now: Picture) -> None:
    changes = compare(base, now)
    assert not {*changes.added} & {*changes.changed}
    for path in {*base.entries, *now.entries}:
        was, there = base.entries.get(path), now.entries.get(path)
        differs = was is None or there is None or bool(differences(was, there))
        owners = {entry.package for entry in (was, there) if entry}
        counted = sum(path in kind for kind in (changes.added, changes.changed, changes.gone))
        expected = differs and not owners & changes.packages
        assert counted == (expected and not is_made(path))


@pytest.mark.parametrize(
    ("other", "found"),
    [
        pytest.param(FILE, (), id="the-same"),
        pytest.param(FILE._replace(mtime_ns=5), ("content",), id="time"),
        pytest.param(FILE._replace(size=11), ("content",), id="size"),
        pytest.param(FILE._replace(mode=0o600), ("mode",), id="mode"),
        pytest.param(FILE._replace(uid=7, mode=0o600), ("mode", "owner"), id="mode-and-owner"),
        pytest.param(FILE._replace(kind="l", target=b"x"), ("type",), id="type"),
    ],
)
def test_two_files_differ_in_what_people_would_say(other: Entry, found: tuple[str, ...]) -> None:
    assert differences(FILE, other) == found


@pytest.mark.parametrize(
    ("digest", "other", "found"),
    [
        pytest.param("aa", "aa", (), id="only-touched"),
        pytest.param("aa", "bb", ("content",), id="changed"),
        pytest.param("aa", "", ("content",), id="one-unknown"),
    ],
)
def test_content_decides_where_both_are_known_else_the_time(digest: str, other: str, found: tuple[str, ...]) -> None:
    assert differences(FILE._replace(digest=digest), FILE._replace(digest=other, mtime_ns=5)) == found
    if digest and other:  # clamped times, as reproducible builds have them
        assert differences(FILE._replace(digest=digest), FILE._replace(digest=other)) == found


def test_files_of_a_changed_package_are_no_changes_of_their_own() -> None:
    base = picture({b"usr/a": FILE._replace(package="old"), b"usr/b": FILE._replace(package="up")}, {"old": "1", "up": "1"})
    now = picture({b"usr/b": FILE._replace(package="up", size=1), b"usr/c": FILE._replace(package="new")}, {"up": "2", "new": "1"})
    changes = compare(base, now)
    assert (changes.installed, changes.removed, changes.upgraded) == ({"new": "1"}, {"old": "1"}, {"up": ("1", "2")})
    assert (changes.added, changes.changed, changes.gone) == ({}, {}, {})


def test_package_half_installed_by_dpkg_is_neither_installed_nor_removed() -> None:
    changes = compare(picture({}, {"tool": "1"}), picture({}, {}, {"tool": "half-installed"}))
    assert (changes.unfinished, changes.removed) == ({"tool": "half-installed"}, {})


@pytest.mark.parametrize(
    ("path", "made"),
    [
        *(pytest.param(path, True, id=path.decode()) for path in (b"etc/ld.so.cache", b"var/log/apt/term.log", b"usr/lib/__pycache__", b"etc/passwd-")),
        *(pytest.param(path, True, id=path.decode()) for path in (b"var/lib/dpkg/status", b"var/lib/dpkg/info", b"var/lib/apt/lists")),
        *(pytest.param(path, False, id=path.decode()) for path in (b"etc/profile", b"var/lib/dpkg/alternatives/t", b"var/lib/dpkg/diversions", b"opt/log")),
    ],
)  # fmt: skip
def test_what_programs_make_by_themselves_is_nobodys_work(path: bytes, made: bool) -> None:
    assert is_made(path) == made


def test_new_folder_is_one_line_with_its_size_and_a_new_file_its_own() -> None:
    entries = {b"opt/a": FOLDER, b"opt/a/b": FOLDER, b"opt/a/b/c": FILE, b"opt/a/d": FILE, b"opt/ab": FILE, b"srv/e": FOLDER}
    assert grouped(entries) == ["/opt/a/ (2 files, 20 B)", "/opt/ab (10 B)", "/srv/e/ (empty)"]


def test_long_list_is_cut_and_says_how_much_more_there_is() -> None:
    base = picture({})
    now = picture({b"opt/%d" % number: FILE for number in range(MOST_LINES + 3)})
    assert as_text(compare(base, now), now)[-1].strip() == "... and 3 more"


def test_names_stay_on_their_line() -> None:
    assert shown(b"opt/a\nb\x1b\xff") == "/opt/a\\nb\\x1b\\xff"
    assert [human(count) for count in (0, 1023, 1536, 5 << 30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]
