"""What of one root's changes gets into another: whatever the three roots hold, nothing that the new image changed is overwritten."""

# ruff: noqa: E501 - a table reads best with a row on a line

import pytest
from hypothesis import given

from programs.root_changes.accounts import Added, merge_accounts, with_lines_of
from programs.root_changes.compare import compare
from programs.root_changes.packages import merge_status, merge_triggers, owned_paths, read_status
from programs.root_changes.picture import Entry, Picture, differences
from programs.root_changes.plan import Plan, plan_carry
from tests.unit.programs.root_changes.pictures import FILE, FOLDER, PICTURES, picture


def plan(base: Picture, now: Picture, new: Picture) -> Plan:
    return plan_carry(base, now, compare(base, now), new)


@given(PICTURES, PICTURES, PICTURES)
def test_nothing_that_the_new_image_has_of_its_own_is_overwritten(base: Picture, now: Picture, new: Picture) -> None:
    for path in plan(base, now, new).paths:
        here, was = new.entries.get(path), base.entries.get(path)
        assert here is None or (was is not None and not differences(was, here)), path


@given(PICTURES, PICTURES, PICTURES)
def test_every_change_is_carried_or_there_or_told(base: Picture, now: Picture, new: Picture) -> None:
    made, changes = plan(base, now, new), compare(base, now)
    told = len(made.conflicts)
    open_ones = [
        path
        for path in (*changes.added, *changes.changed)
        if path not in made.paths and (path not in new.entries or differences(now.entries[path], new.entries[path]))
    ]
    both_folders = [path for path in open_ones if path in new.entries and now.entries[path].kind == new.entries[path].kind == "d"]
    assert len(open_ones) - len(both_folders) <= told


@given(PICTURES, PICTURES)
def test_root_that_was_not_changed_gives_nothing_to_any_other(base: Picture, new: Picture) -> None:
    made = plan(base, base, new)
    assert (made.paths, made.packages, made.conflicts, made.not_removed) == ((), (), (), ())


ROOT = {b"etc": FOLDER, b"usr": FOLDER}


@pytest.mark.parametrize(
    ("base", "now", "new", "why"),
    [
        pytest.param({}, {b"etc/a": FILE}, {}, None, id="added"),
        pytest.param({}, {b"etc/a": FILE}, {b"etc/a": FILE._replace(size=1)}, "the new image has one of its own", id="added-in-both"),
        pytest.param({b"etc/a": FILE}, {b"etc/a": FILE._replace(size=1)}, {b"etc/a": FILE}, None, id="changed"),
        pytest.param({b"etc/a": FILE}, {b"etc/a": FILE._replace(size=1)}, {}, "the new image no longer has it", id="gone-in-the-new"),
        pytest.param({b"etc/a": FILE}, {b"etc/a": FILE._replace(size=1)}, {b"etc/a": FILE._replace(size=2)}, "the new image changed it too", id="changed-in-both"),
        pytest.param({b"etc/a": FILE}, {b"etc/a": FOLDER}, {b"etc/a": FILE}, "one is a folder and the other is not", id="a-folder-by-now"),
        pytest.param({}, {b"etc/a": FILE._replace(kind="s")}, {}, "only files, folders and links are carried", id="socket"),
        pytest.param({}, {b"etc/a": FILE._replace(uid=9)}, {}, None, id="owner-unknown-in-both"),
        pytest.param({}, {b"etc/x": FOLDER, b"etc/x/a": FILE}, {b"etc/x": Entry("l", 0, 0, 0, target=b"/")}, "/etc/x is no folder here", id="through-a-link"),
    ],
)  # fmt: skip
def test_change_of_a_file_is_carried_or_says_why_not(
    base: dict[bytes, Entry], now: dict[bytes, Entry], new: dict[bytes, Entry], why: str | None
) -> None:
    made = plan(picture({**ROOT, **base}), picture({**ROOT, **now}), picture({**ROOT, **new}))
    last = max(now)
    assert (last in made.paths) == (why is None)
    assert ([reason for what, reason in made.conflicts if what == f"/{last.decode()}"] or [None]) == [why]


TOOL = FILE._replace(package="tool")


@pytest.mark.parametrize(
    ("base", "now", "new", "there", "why"),
    [
        pytest.param({}, {"tool": "2"}, {}, {}, None, id="installed"),
        pytest.param({}, {"tool": "2"}, {"tool": "3"}, {}, "version 3 is here", id="newer-in-the-image"),
        pytest.param({}, {"tool": "2"}, {}, {b"usr/tool": FILE._replace(size=1)}, "/usr/tool: the new image has one of its own", id="file-in-the-way"),
        pytest.param({"tool": "1"}, {"tool": "2"}, {"tool": "1"}, {b"usr/tool": TOOL._replace(size=7)}, None, id="upgraded"),
        pytest.param({"tool": "1"}, {"tool": "2"}, {"tool": "3"}, {}, "version 3 is here; the old image had 1", id="upgraded-in-both"),
        pytest.param({"tool": "1"}, {"tool": "2"}, {}, {}, "the new image does not have this package", id="not-in-the-new-image"),
    ],
)  # fmt: skip
def test_package_is_carried_whole_or_not_at_all(
    base: dict[str, str], now: dict[str, str], new: dict[str, str], there: dict[bytes, Entry], why: str | None
) -> None:
    files = {**ROOT, b"usr/tool": TOOL, b"usr/tool2": TOOL}
    before = {**ROOT, b"usr/tool": TOOL._replace(size=7)} if base else ROOT
    made = plan(picture(before, base), picture(files, now), picture({**ROOT, **there}, new))
    assert made.packages == (("tool",) if why is None else ())
    assert {b"usr/tool", b"usr/tool2"} & {*made.paths} == ({b"usr/tool", b"usr/tool2"} if why is None else set())
    assert made.conflicts == (() if why is None else (("package tool 2", why),))


def test_accounts_are_added_where_name_and_number_are_free() -> None:
    new = Picture({}, {}, {}, "root:x:0:0::/:/bin/sh\nother:x:7:7::/:\n", "root:x:0:\nvideo:x:44:\n")
    users = {"fits": "fits:x:5:5::/:", "other": "other:x:6:6::/:", "late": "late:x:7:7::/:"}
    merged = merge_accounts(Added(users, {"fits": "fits:x:5:"}, frozenset({("video", "fits"), ("video", "gone")})), new)
    assert merged.passwd.splitlines()[2:] == ["fits:x:5:5::/:"]
    assert merged.group.splitlines() == ["root:x:0:", "video:x:44:fits", "fits:x:5:"]
    assert dict(merged.conflicts) == {
        "user late": "its number 7 is other's here",
        "user other": "has the number 7 here, not 6",
        "member gone of group video": "one of the two is not there",
    }
    assert with_lines_of("root:*:1\n", "root:x\nfits:!:2\nother:!:3\n", ("fits",)) == "root:*:1\nfits:!:2\n"


STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2
Conffiles:
 /etc/a file 0123 obsolete
 /etc/b 4567
Description: x
 /etc/c is no conffile

Package: gone
Status: deinstall ok config-files
Version: 1

"""


def test_dpkgs_files_are_read_and_written_as_dpkg_does() -> None:
    packages = read_status(STATUS)
    assert (packages["libc6:amd64"].version, packages["libc6:amd64"].is_installed) == ("2", True)
    assert packages["libc6:amd64"].conffiles == {b"etc/a file", b"etc/b"}
    assert not packages["gone"].is_installed
    assert not packages["gone"].is_unfinished
    newer = read_status(STATUS.replace("Version: 2", "Version: 3"))["libc6:amd64"]
    assert [package.version for package in read_status(merge_status(STATUS, [newer])).values()] == ["1", "3"]
    assert [*owned_paths(b"/.\n/lib\n/lib/x\n/usr/y\n", {b"lib": b"usr/lib"})] == [b"lib", b"usr/lib/x", b"usr/y"]
    assert merge_triggers("/a x\n", "/a x\n/b y/noawait\n/c z\n", ["y", "x"]) == "/a x\n/b y/noawait\n"
