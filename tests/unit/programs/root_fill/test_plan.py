"""What a fill decides: whose a name is, what a failed download or tar means. With real programs it is tests/slurm/test_root_*.py."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.root_fill.plan import (
    Download,
    Heard,
    Tries,
    Unpacked,
    Wanted,
    copy_command,
    judge_download,
    judge_filled,
    judge_unpacking,
    read_carried,
    read_wanted,
)

IMAGE = Wanted("2", image="img:2")
TAR = Wanted("2", tar="https://files.example/root.tar", sha256="ab" * 32)
MIB = 1 << 20


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        pytest.param({"SLIPWAY_ROOT_VERSION": "2", "SLIPWAY_ROOT_IMAGE": "img:2"}, IMAGE, id="image"),
        pytest.param({"SLIPWAY_ROOT_VERSION": "2", "SLIPWAY_ROOT_TAR": TAR.tar, "SLIPWAY_ROOT_SHA256": TAR.sha256}, TAR, id="tar"),
        pytest.param(
            {"SLIPWAY_ROOT_VERSION": "2", "SLIPWAY_ROOT_IMAGE": "img:2", "SLIPWAY_ROOT_CARRY_FROM": "1"},
            Wanted("2", image="img:2", carry_from="1"),
            id="with-changes-of-another",
        ),
    ],
)
def test_job_says_what_to_fill(env: dict[str, str], wanted: Wanted) -> None:
    assert read_wanted(env) == wanted


def test_tar_without_a_digest_is_no_job() -> None:
    with pytest.raises(KeyError):
        read_wanted({"SLIPWAY_ROOT_VERSION": "2", "SLIPWAY_ROOT_TAR": TAR.tar})


def test_only_a_tar_on_the_volume_is_a_file() -> None:
    assert Wanted("2", tar="file:///shared/root.tar", sha256="x").file == "/shared/root.tar"
    assert (IMAGE.file, TAR.file) == ("", "")


CARRYING = Wanted("2", image="img:2", carry_from="1")


@pytest.mark.parametrize(
    ("wanted", "filled_from", "carried", "why"),
    [
        pytest.param(IMAGE, "img:2", "", "", id="the-same-image"),
        pytest.param(TAR, f"tar {'ab' * 32}", "", "", id="the-same-tar"),
        pytest.param(IMAGE, "img:1", "", "filled from img:1, not from img:2. A name is for one image", id="another-image"),
        pytest.param(IMAGE, f"tar {'ab' * 32}", "", "not from img:2", id="a-tar"),
        pytest.param(IMAGE, "", "", "filled from something unknown, not from img:2", id="no-record"),
        pytest.param(CARRYING, "img:2", "1", "", id="with-the-same-changes"),
        pytest.param(CARRYING, "img:2", "", "without what was changed in 1", id="without-changes"),
        pytest.param(CARRYING, "img:2", "0", "without what was changed in 1", id="with-the-changes-of-another"),
        pytest.param(IMAGE, "img:2", "1", "", id="with-changes-that-nobody-asks-for-any-more"),
    ],
)
def test_name_of_a_version_is_for_one_root(wanted: Wanted, filled_from: str, carried: str, why: str) -> None:
    said = judge_filled(wanted, filled_from, carried)
    assert why in said
    assert bool(why) == bool(said)


@pytest.mark.parametrize(
    ("record", "version"),
    [
        pytest.param("from 1\n2 packages\n", "1", id="carried"),
        pytest.param("", "", id="no-record"),
        pytest.param("2 packages\nfrom 1\n", "", id="not-in-its-first-line"),
    ],
)
def test_record_names_the_version_whose_changes_were_carried(record: str, version: str) -> None:
    assert read_carried(record) == version


def test_interrupted_copy_resumes_with_rsync_and_keeps_what_is_right() -> None:
    assert copy_command("/proc/7/root", "/shared/filling/2", is_begun=False)[0] == "cp"
    begun = copy_command("/proc/7/root", "/shared/filling/2", is_begun=True)
    assert begun[0] == "rsync"
    assert {"--delete", "--numeric-ids", "--one-file-system"} <= set(begun)
    assert begun[-2:] == ["/proc/7/root/", "/shared/filling/2/"]


@pytest.mark.parametrize(
    ("code", "status", "outcome"),
    [
        pytest.param(0, "200", Download.DONE, id="whole"),
        pytest.param(0, "206", Download.DONE, id="the-rest"),
        pytest.param(22, "416", Download.ANEW, id="more-is-here-than-there"),
        pytest.param(33, "200", Download.ANEW, id="server-without-ranges"),
        pytest.param(22, "404", Download.REFUSED, id="no-file"),
        pytest.param(22, "403", Download.REFUSED, id="no-right"),
        pytest.param(22, "408", Download.AGAIN, id="server-that-waited-too-long"),
        pytest.param(22, "429", Download.AGAIN, id="server-that-has-had-enough"),
        pytest.param(22, "503", Download.AGAIN, id="server-that-is-busy"),
        pytest.param(23, "200", Download.FULL, id="full-volume"),
        pytest.param(28, "000", Download.AGAIN, id="silence"),
        pytest.param(18, "200", Download.AGAIN, id="connection-that-breaks"),
    ],
)
def test_what_came_of_a_download(code: int, status: str, outcome: Download) -> None:
    assert judge_download(code, status) == outcome


@given(st.lists(st.integers(0, 3 * MIB), max_size=20))
def test_download_is_abandoned_after_five_tries_that_bring_nothing(amounts: Sequence[int]) -> None:
    """What comes in pieces comes too. The pauses grow with each try that fails."""
    tries, row = Tries(), 0
    for got in amounts:
        tries = tries.after(got)
        row = 1 if got >= MIB else row + 1
        assert tries.is_over == (row >= 5)
        assert tries.pause_s == 2 * row


def hear(lines: Sequence[str]) -> Heard:
    heard = Heard()
    for line in lines:
        heard.hear(line)
    return heard


@pytest.mark.parametrize(
    ("lines", "code", "outcome", "why"),
    [
        pytest.param([], 0, Unpacked.DONE, "", id="whole"),
        pytest.param(["tar: implausibly old time stamp"], 0, Unpacked.DONE, "", id="with-a-warning"),
        pytest.param(["tar: Removing leading `/' from member names"], 0, Unpacked.REFUSED, "absolute paths", id="absolute"),
        pytest.param(["tar: x: Member name contains '..'"], 2, Unpacked.REFUSED, "with .. in them", id="upwards"),
        pytest.param(["tar: x: Cannot write: No space left on device"], 2, Unpacked.FULL, "", id="full"),
        pytest.param(["tar: x: Cannot open: Disk quota exceeded", "tar: Exiting"], 2, Unpacked.FULL, "", id="over-its-quota"),
        pytest.param(["tar: Unexpected EOF", "tar: Exiting"], 2, Unpacked.REFUSED, "it does not unpack: tar: Exiting", id="cut-off"),
    ],
)
def test_what_came_of_tar(lines: Sequence[str], code: int, outcome: Unpacked, why: str) -> None:
    found, said = judge_unpacking(hear(lines), code)
    assert found == outcome
    assert why in said


@pytest.mark.parametrize("at", [0, 50_000, 99_999])
def test_line_that_decides_is_heard_among_any_number(at: int) -> None:
    """tar may say a line of each of a million files; twenty of them are kept."""
    lines = ["tar: implausibly old time stamp"] * 100_000
    lines[at] = "tar: x: Member name contains '..'"
    heard = hear(lines)
    assert len(heard.first) == 20
    assert judge_unpacking(heard, 2)[0] == Unpacked.REFUSED
