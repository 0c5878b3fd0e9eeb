"""Images from archives and recipes: layers one over the other, whiteouts applied, unfinished work never taken for finished."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from local import rootfs
from local.commands import LocalError
from local.rootfs import Recipe, plan_whiteouts

Layer = Mapping[str, str | None]
"""Path and content of files; None makes a folder."""


def tar_of(files: Mapping[str, bytes | str | None]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
                continue
            data = content.encode() if isinstance(content, str) else content
            entry.size, entry.mode = len(data), 0o4755
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def docker_archive(path: Path, *layers: Layer, tags: list[str] | None = None, compressed: bool = False) -> Path:
    blobs = [tar_of(layer) for layer in layers]
    config = json.dumps({"config": {"Cmd": ["/a"]}, "rootfs": {"diff_ids": [sha256(blob).hexdigest() for blob in blobs]}})
    packed = [gzip.compress(blob) if compressed else blob for blob in blobs]
    names = [f"{number}/layer.tar" for number in range(len(blobs))]
    manifest = [{"Config": "config.json", "RepoTags": ["localhost/slipway/x:1"] if tags is None else tags, "Layers": names}]
    # The manifest comes last, as some builders write it.
    path.write_bytes(tar_of({**dict(zip(names, packed, strict=True)), "config.json": config, "manifest.json": json.dumps(manifest)}))
    return path


def oci_archive(path: Path, layer: Layer) -> Path:
    def blob(content: bytes) -> tuple[str, str]:
        digest = sha256(content).hexdigest()
        return f"sha256:{digest}", f"./blobs/sha256/{digest}"

    packed, config = gzip.compress(tar_of(layer)), json.dumps({"config": {"Cmd": ["/a"]}}).encode()
    (layer_id, layer_name), (config_id, config_name) = blob(packed), blob(config)
    manifest = json.dumps({"config": {"digest": config_id}, "layers": [{"digest": layer_id}]}).encode()
    manifest_id, manifest_name = blob(manifest)
    notes = {"org.opencontainers.image.ref.name": "localhost/slipway/x:1"}
    index = json.dumps({"manifests": [{"digest": manifest_id, "annotations": notes}]})
    path.write_bytes(tar_of({"./index.json": index, manifest_name: manifest, config_name: config, layer_name: packed}))
    return path


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("compressed", [pytest.param(False, id="plain"), pytest.param(True, id="gzip")])
def test_layers_lie_one_over_the_other(tmp_path: Path, compressed: bool) -> None:
    archive = docker_archive(tmp_path / "a.tar", {"etc": None, "etc/a": "1", "b": "1"}, {"b": "2", "c": "2"}, compressed=compressed)
    image = rootfs.unpack(archive, tmp_path / "cache")
    assert content(image.rootfs) == {"etc/a": "1", "b": "2", "c": "2"}
    assert image.references == ("localhost/slipway/x:1",)
    assert image.config == {"Cmd": ["/a"]}


def test_oci_layout_is_read_as_well(tmp_path: Path) -> None:
    image = rootfs.unpack(oci_archive(tmp_path / "a.tar", {"a": "1"}), tmp_path / "cache")
    assert content(image.rootfs) == {"a": "1"}
    assert image.references == ("localhost/slipway/x:1",)


def test_whiteouts_delete_below_and_not_beside(tmp_path: Path) -> None:
    lower = {"keep": "1", "gone": "1", "dir": None, "dir/old": "1", "tree": None, "tree/deep": "1"}
    upper = {".wh.gone": "", "dir": None, "dir/.wh..wh..opq": "", "dir/new": "2", ".wh.tree": ""}
    image = rootfs.unpack(docker_archive(tmp_path / "a.tar", lower, upper), tmp_path / "cache")
    assert content(image.rootfs) == {"keep": "1", "dir/new": "2"}


def test_whiteouts_are_planned_by_kind() -> None:
    assert plan_whiteouts(["a/.wh.b", "a/.wh..wh..opq", "a/c", ".wh.d"]) == (["a/b", "d"], ["a"])


def test_set_user_id_bits_stay_and_only_root_gets_at_them(tmp_path: Path) -> None:
    image = rootfs.unpack(docker_archive(tmp_path / "a.tar", {"a": "1"}), tmp_path / "cache")
    assert (image.rootfs / "a").stat().st_mode & 0o7777 == 0o4755
    assert image.rootfs.parent.stat().st_mode & 0o777 == 0o700
    assert image.rootfs.stat().st_mode & 0o777 == 0o755


def test_unpacked_image_is_not_unpacked_again(tmp_path: Path) -> None:
    archive = docker_archive(tmp_path / "a.tar", {"a": "1"})
    first = rootfs.unpack(archive, tmp_path / "cache")
    (first.rootfs / "mark").touch()
    assert rootfs.unpack(archive, tmp_path / "cache") == first
    assert (first.rootfs / "mark").exists()


def test_broken_layer_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    archive = docker_archive(tmp_path / "a.tar", {"a": "1" * 5000}, {"b": "1"})
    data = archive.read_bytes()
    # The first layer's own header, behind its header in the archive.
    archive.write_bytes(data[:512] + b"\xff" * 700 + data[1212:])
    with pytest.raises(LocalError, match=r"unpacking 0/layer\.tar failed"):
        rootfs.unpack(archive, tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache/rootfs").iterdir()] == [".partial"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"readme": "x"}, "holds no image", id="another tar"),
        pytest.param({"manifest.json": "{"}, "not an image archive", id="broken manifest"),
        pytest.param({"manifest.json": "[]"}, "0 images", id="empty"),
        pytest.param({"manifest.json": '[{"RepoTags": null, "Config": "c", "Layers": []}]', "c": "{}"}, "has no name", id="no name"),
        pytest.param({"manifest.json": '[{"RepoTags": ["a"], "Config": "c", "Layers": []}]'}, "c is named but not in it", id="no config"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, files: Mapping[str, Any], words: str) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of(files))
    with pytest.raises(LocalError, match=words):
        rootfs.unpack(tmp_path / "a.tar", tmp_path / "cache")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(None, "no such file", id="missing"),
        pytest.param("kind: Pod", "not an image archive", id="no tar"),
    ],
)
def test_wrong_file_is_one_line(tmp_path: Path, text: str | None, words: str) -> None:
    if text:
        (tmp_path / "a.tar").write_text(text)
    with pytest.raises(LocalError, match=words) as raised:
        rootfs.unpack(tmp_path / "a.tar", tmp_path / "cache")
    assert "\n" not in str(raised.value)


def test_recipe_is_laid_out_with_its_links(tmp_path: Path) -> None:
    (tmp_path / "busybox").write_text("program")
    (tmp_path / "busybox").chmod(0o755)
    recipe = Recipe("shell", "v1", {"bin/busybox": tmp_path / "busybox"}, ("/bin/sh",), {"bin/sh": "busybox"})
    image = rootfs.make(recipe, tmp_path / "cache")
    assert (image.rootfs / "bin/sh").read_text() == "program"
    assert (image.rootfs / "bin/busybox").stat().st_mode & 0o111
    assert image.references == (f"localhost/slipway/shell:{recipe.key[:12]}",)
    assert image.config["Entrypoint"] == ["/bin/sh"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Recipe("x", "2", {"p": Path("/p")}, ("/p",), {}), id="content"),
        pytest.param(Recipe("x", "1", {"q": Path("/p")}, ("/p",), {}), id="path"),
        pytest.param(Recipe("x", "1", {"p": Path("/p")}, ("/p", "-P"), {}), id="entrypoint"),
        pytest.param(Recipe("x", "1", {"p": Path("/p")}, ("/p",), {"l": "p"}), id="link"),
    ],
)
def test_tag_of_a_recipe_follows_its_content(other: Recipe) -> None:
    assert other.reference != Recipe("x", "1", {"p": Path("/p")}, ("/p",), {}).reference


def test_unused_root_filesystems_go_and_used_ones_stay(tmp_path: Path) -> None:
    for name in ("used", "unused", "half.partial"):
        (tmp_path / "rootfs" / name).mkdir(parents=True)
    rootfs.remove_unused(tmp_path, [tmp_path / "rootfs/used"])
    assert [path.name for path in (tmp_path / "rootfs").iterdir()] == ["used"]


def test_unpacked_image_gets_this_machines_files_once(tmp_path: Path) -> None:
    image = rootfs.unpack(oci_archive(tmp_path / "a.tar", {"etc/apt/x": "1"}), tmp_path / "cache")
    files = {"etc/apt/apt.conf.d/90machine": "a\n", "etc/pip.conf": "b\n"}
    assert rootfs.add_files(image, files)
    assert {name: (image.rootfs / name).read_text() for name in files} == files
    assert not rootfs.add_files(image, files)
    assert rootfs.add_files(image, {**files, "etc/pip.conf": "c\n"})


def test_certificates_are_trusted_by_the_run_after_a_killed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted: list[list[str]] = []

    def killed(_: list[str]) -> None:
        raise KeyboardInterrupt

    image = rootfs.unpack(oci_archive(tmp_path / "a.tar", {"a": "1"}), tmp_path / "cache")
    files = {"usr/local/share/ca-certificates/own.crt": "c\n"}
    monkeypatch.setattr(rootfs, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        rootfs.add_files(image, files)
    monkeypatch.setattr(rootfs, "run", trusted.append)
    assert rootfs.add_files(image, files)
    assert not rootfs.add_files(image, files)
    assert trusted == [["chroot", str(image.rootfs), "/usr/sbin/update-ca-certificates"]]


def test_file_whose_folder_is_a_link_out_of_the_image_is_refused(tmp_path: Path) -> None:
    image = rootfs.unpack(oci_archive(tmp_path / "a.tar", {"a": "1"}), tmp_path / "cache")
    (image.rootfs / "etc").symlink_to(tmp_path)
    with pytest.raises(LocalError, match=r"/etc/pip\.conf leads out of the image"):
        rootfs.add_files(image, {"etc/pip.conf": "x"})
    assert not (tmp_path / "pip.conf").exists()
