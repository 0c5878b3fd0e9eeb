"""Versions of the shared root that come from a tar: downloaded from a real server, checked, unpacked; killed, broken, on a full volume."""

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.support.slurm.root_jobs import play

PACKERS = {"none": [], "gzip": ["gzip", "-c"], "xz": ["xz", "-c", "-0"], "zstd": ["zstd", "-c", "-q"]}


class Server(ThreadingHTTPServer):
    """Serves one file, with ranges; may stop in the middle of the first answer, and remembers what it was asked for."""

    daemon_threads = True

    def __init__(self, content: bytes, stops_at: int | None = None, has_ranges: bool = True, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.stops_at, self.has_ranges, self.status = content, stops_at, has_ranges, status
        self.ranges: list[str] = []
        self.go_on = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/root.tar"


class _Handler(BaseHTTPRequestHandler):
    server: Server  # type: ignore[assignment]

    def do_GET(self) -> None:
        server = self.server
        asked = self.headers.get("Range", "")
        server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.has_ranges else 0
        if server.status != 200 or start >= len(server.content):
            self.send_response(416 if server.status == 200 else server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        end = len(server.content)
        if server.stops_at is not None and not start:
            self.wfile.write(server.content[: server.stops_at])
            server.go_on.wait(600)
            return
        self.wfile.write(server.content[start:end])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        pass


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers that end with the test."""
    started: list[Server] = []

    def start(content: bytes, **options: Any) -> Server:
        server = Server(content, **options)
        Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.go_on.set()
        server.shutdown()
        server.server_close()


def small_root(*more: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar of a root with some files, and further members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "dev", "etc", "var"):
            made = tarfile.TarInfo(f"./{folder}")
            made.type, made.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(made)
        for info, content in [named("./etc/motd", b"hello\n" * 400_000), device("./dev/null"), *more]:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def named(name: str, content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def device(name: str) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.devmajor, made.devminor = tarfile.CHRTYPE, 1, 3
    return made, b""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("packer", [pytest.param(name, id=name) for name in PACKERS])
def test_tar_in_any_compression_makes_a_version(image_root: Path, tmp_path: Path, serve: Callable[..., Server], packer: str) -> None:
    content = small_root()
    if command := PACKERS[packer]:
        content = subprocess.run(command, input=content, capture_output=True, check=True).stdout
    server, digest = serve(content), sha256(content)
    scene = """
        fill_tar t "$URL" "$SUM"; fill_tar t "$URL" "$SUM"
        cat "$shared/sources/t"; wc -c <"$shared/versions/t/etc/motd"; ls -A "$shared/filling"
    """
    printed, said = play(image_root, tmp_path, scene, URL=server.url, SUM=digest)
    assert printed.splitlines() == [f"tar {digest}", "2400000"]
    assert "version t is there already" in said
    assert server.ranges == [""]


def test_whole_image_in_a_tar_becomes_a_version_that_can_be_current(image_root: Path, tmp_path: Path) -> None:
    """Other tests make hard links of the image's files meanwhile, which tar takes for a change, and ends with 1."""
    scene = """
        tar -C "$IMAGE" -cf "$shared/root.tar" . || [[ $? == 1 ]]
        fill_tar t file:///shared/root.tar "$(sha256sum <"$shared/root.tar" | cut -d ' ' -f 1)"
        switch t; current; ls "$shared/root.tar"; getcap "$shared/versions/t/usr/bin/ping" 2>/dev/null || true
        [[ $(find "$IMAGE/usr" | wc -l) == $(find "$shared/versions/t/usr" | wc -l) ]] && echo same
        report
    """
    printed, _ = play(image_root, tmp_path, scene)
    assert "versions/t" in printed
    assert "same" in printed
    assert printed.splitlines()[-1] == "  nothing was changed"


def test_download_that_was_killed_goes_on_where_it_ended(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    content = small_root()
    server = serve(content, stops_at=1_000_000)
    scene = """
        kill_when '[[ $(stat -c %s "$shared/filling/t.tar.part" 2>/dev/null || echo 0) -gt 500000 ]]' fill_tar t "$URL" "$SUM"
        fill_tar t "$URL" "$SUM"; wc -c <"$shared/versions/t/etc/motd"; ls -A "$shared/filling"
    """
    printed, said = play(image_root, tmp_path, scene, URL=server.url, SUM=sha256(content))
    assert printed.splitlines() == ["killed", "2400000"]
    assert server.ranges[0] == ""
    assert len(server.ranges) == 2
    assert 500_000 < int(server.ranges[1].removeprefix("bytes=").rstrip("-")) <= 1_000_000
    assert "going on to get" in said


def test_connection_that_breaks_is_taken_up_again(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    content = small_root()
    server = serve(content, stops_at=1_500_000)
    server.go_on.set()
    scene = 'fill_tar t "$URL" "$SUM"; wc -c <"$shared/versions/t/etc/motd"'
    assert play(image_root, tmp_path, scene, URL=server.url, SUM=sha256(content))[0] == "2400000"
    assert server.ranges == ["", "bytes=1500000-"]


@pytest.mark.parametrize(
    ("begun", "has_ranges"),
    [
        pytest.param(b"another file", True, id="the-start-of-another-file"),
        pytest.param(b"y" * 4_000_000, True, id="more-than-there-is"),
        pytest.param(None, True, id="whole-but-not-checked"),
        pytest.param(b"./bin", False, id="server-without-ranges"),
    ],
)
def test_what_an_earlier_try_left_is_used_or_thrown_away(
    image_root: Path, tmp_path: Path, serve: Callable[..., Server], begun: bytes | None, has_ranges: bool
) -> None:
    content = small_root()
    server = serve(content, has_ranges=has_ranges)
    left = tmp_path / "left"
    left.write_bytes(content if begun is None else begun)
    (tmp_path / "play").mkdir()
    scene = """
        install -d -m 700 "$shared/filling"; cp "$LEFT" "$shared/filling/t.tar.part"
        fill_tar t "$URL" "$SUM"; wc -c <"$shared/versions/t/etc/motd"
    """
    printed, _ = play(image_root, tmp_path / "play", scene, URL=server.url, SUM=sha256(content), LEFT=str(left))
    assert printed == "2400000"
    assert (server.ranges == []) == (begun is None)


def test_killed_unpacking_is_repeated_without_a_second_download(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    content = small_root(*(named(f"./var/{number}", b"z" * 20_000) for number in range(3_000)))
    server = serve(content)
    scene = """
        TAR_OPTIONS=$HOLD_TAR kill_when '[[ -e $shared/held ]]' fill_tar t "$URL" "$SUM"; ls "$shared/versions" | wc -l
        fill_tar t "$URL" "$SUM"; ls "$shared/versions/t/var" | wc -l; du -sb "$shared/versions/t/var" | cut -f1; ls -A "$shared/filling"
    """
    printed, _ = play(image_root, tmp_path, scene, URL=server.url, SUM=sha256(content))
    assert printed.splitlines()[:3] == ["killed", "0", "3002"]  # with log and tmp
    assert len(server.ranges) == 1


def test_nothing_of_an_unchecked_tar_gets_into_a_version_from_an_image(image_root: Path, tmp_path: Path) -> None:
    """Its fill was killed; its file has the size and the time of the image's, so rsync would not look at it again."""
    scene = """
        mkdir -p "$WORK/tar/etc" "$WORK/tar/var"; file=etc/debian_version
        tr '[:alnum:]' x <"$IMAGE/$file" >"$WORK/tar/$file"; touch -r "$IMAGE/$file" "$WORK/tar/$file"
        for n in {1..3000}; do head -c 20000 /dev/zero >"$WORK/tar/var/$n"; done
        tar -C "$WORK/tar" -cf "$shared/root.tar" ./etc ./var; rm -r "$WORK/tar"
        TAR_OPTIONS=$HOLD_TAR kill_when '[[ -e $shared/held ]]' fill_tar t file:///shared/root.tar 0000
        cmp -s "$IMAGE/$file" "$shared/filling/t/$file" || echo another
        fill t img:1; cmp "$IMAGE/$file" "$shared/versions/t/$file" && echo same
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines() == ["killed", "another", "same"]
    assert "what was begun of version t, from tar 0000, is removed" in said


def test_wrong_digest_is_told_with_both_and_leaves_nothing(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    content, wanted = small_root(), sha256(b"another")
    scene = 'code_of fill_tar t "$URL" "$SUM"; ls -A "$shared/versions" "$shared/sources"; ls -A "$shared/filling"'
    printed, said = play(image_root, tmp_path, scene, URL=serve(content).url, SUM=wanted)
    assert printed.split() == ["code", "3", str(tmp_path / "volume/sources:"), str(tmp_path / "volume/versions:"), "t.lock"]
    assert f"has the sha256 {sha256(content)}, not {wanted}" in said


@pytest.mark.parametrize("content", [pytest.param(small_root(), id="another-root"), pytest.param(b"no tar" * 1000, id="no-tar")])
def test_tar_with_another_digest_is_no_version_and_stays_on_the_volume(image_root: Path, tmp_path: Path, content: bytes) -> None:
    """It is unpacked while its digest is taken."""
    left = tmp_path / "left"
    left.write_bytes(content)
    (tmp_path / "play").mkdir()
    scene = """
        cp "$LEFT" "$shared/root.tar"; code_of fill_tar t file:///shared/root.tar "$SUM"
        ls -A "$shared/versions"; ls -A "$shared/filling"; cmp "$LEFT" "$shared/root.tar" && echo same
        fill_tar t file:///shared/root.tar "$(sha256sum <"$LEFT" | cut -d ' ' -f 1)" || true; ls -A "$shared/versions"
    """
    wanted = sha256(b"another")
    printed, said = play(image_root, tmp_path / "play", scene, LEFT=str(left), SUM=wanted)
    assert printed.split() == ["code", "3", "t.lock", "same", *(["t"] if content == small_root() else [])]
    assert f"has the sha256 {sha256(content)}, not {wanted}" in said


def test_address_without_a_file_is_not_tried_again(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(b"", status=404)
    printed, said = play(image_root, tmp_path, 'code_of fill_tar t "$URL" "$SUM"', URL=server.url, SUM=sha256(b""))
    assert printed == "code 3"
    assert f"{server.url} answers 404" in said
    assert len(server.ranges) == 1


def test_name_of_a_version_is_for_one_tar_wherever_that_is(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    content = small_root()
    one, other = serve(content), serve(content)
    scene = 'fill_tar t "$URL" "$SUM"; code_of fill_tar t "$OTHER" "$SUM"; code_of fill_tar t "$URL" "${SUM/?/x}"; code_of fill t img:1'
    printed, said = play(image_root, tmp_path, scene, URL=one.url, OTHER=other.url, SUM=sha256(content))
    assert printed.split() == ["code", "0", "code", "3", "code", "3"]
    assert f"filled from tar {sha256(content)}, not from img:1" in said
    assert other.ranges == []


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = tarfile.SYMTYPE, target
    return made, b""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(small_root(named("/escaped")), "members with absolute paths", id="absolute"),
        pytest.param(small_root(named("./etc/../../../escaped")), "members with absolute paths or with ..", id="upwards"),
        pytest.param(small_root(link("./out", "/shared"), named("./out/escaped")), "it does not unpack", id="through-a-link"),
        pytest.param(small_root(device("./usr/disk")), "device nodes outside /dev, which no version may: /usr/disk", id="device"),
        pytest.param(small_root(device("./var/cache/disk")), "device nodes outside /dev", id="device-in-a-cache"),
        pytest.param(small_root()[:1_000_000], "it does not unpack", id="cut-off"),
        pytest.param(b"<html>not here</html>" * 100, "it does not unpack", id="no-tar"),
    ],
)
def test_tar_that_is_none_or_reaches_outside_is_refused_for_good(
    image_root: Path, tmp_path: Path, serve: Callable[..., Server], content: bytes, why: str
) -> None:
    scene = """
        code_of fill_tar t "$URL" "$SUM"; ls -A "$shared/versions"; ls -A "$shared/filling"
        find "$shared" "$WORK/filler" -xdev -name escaped
    """
    printed, said = play(image_root, tmp_path, scene, URL=serve(content).url, SUM=sha256(content))
    assert printed.split() == ["code", "3", "t.lock"]
    assert why in said


@pytest.mark.parametrize("size", [pytest.param("1m", id="while-it-comes"), pytest.param("4m", id="while-it-is-unpacked")])
def test_full_volume_is_told_and_fills_no_further(image_root: Path, tmp_path: Path, serve: Callable[..., Server], size: str) -> None:
    content = small_root()
    scene = 'code_of fill_tar t "$URL" "$SUM"; ls -A "$shared/versions"; [[ ! -e $shared/filling/t ]] && echo gone'
    printed, said = play(image_root, tmp_path, scene, size=size, URL=serve(content).url, SUM=sha256(content))
    assert printed.split() == ["code", "1", "gone"]
    assert "the shared volume is full" in said


def test_tar_without_a_shell_is_refused_by_the_switch(image_root: Path, tmp_path: Path, serve: Callable[..., Server]) -> None:
    content = small_root()
    scene = 'fill one img:1; switch one; fill_tar t "$URL" "$SUM"; code_of switch t; current'
    printed, said = play(image_root, tmp_path, scene, URL=serve(content).url, SUM=sha256(content))
    assert printed.splitlines() == ["code 3", "versions/one"]
    assert "no shell runs in version t" in said
