"""Pictures of a root, made by hand and at random."""

from hypothesis import strategies as st

from programs.root_changes.picture import Entry, Picture

FILE = Entry("f", 0o644, 0, 0, 10, 1_700_000_000_123_456_789)
FOLDER = Entry("d", 0o755, 0, 0)
PASSWD = "root:x:0:0::/root:/bin/sh\n"
GROUP = "root:x:0:\ntool:x:5:\n"
NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name and b"/" not in name)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
ENTRIES = st.builds(
    Entry,
    st.sampled_from("fdl"),
    st.sampled_from([0o644, 0o755, 0o4755]),
    st.sampled_from([0, 5]),
    st.just(0),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["", "aa", "bb"]),
    st.sampled_from([b"", b"there", b"\xff\n"]),
    st.sampled_from(["", "tool", "libc6:amd64"]),
)
PICTURES = st.builds(
    Picture,
    st.dictionaries(PATHS, ENTRIES, max_size=8),
    st.dictionaries(st.sampled_from(["tool", "libc6:amd64", "bash"]), st.sampled_from(["1", "2"])),
    st.just({}),
    st.just(PASSWD),
    st.just(GROUP),
)


def picture(entries: dict[bytes, Entry], packages: dict[str, str] | None = None, unfinished: dict[str, str] | None = None) -> Picture:
    return Picture(entries, packages or {}, unfinished or {}, PASSWD, GROUP)
