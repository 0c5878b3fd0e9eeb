"""What containerd is told of an image, and when a node is left alone."""

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

from local import images
from local.layout import NODES, WORKERS, find_paths
from local.rootfs import Image

IMAGE = Image(("localhost/slipway/a:1", "localhost/slipway/a:latest"), "ab" * 32, {"Cmd": ["/a"]}, Path("/cache/rootfs/abab"))


def listing(image: Image) -> str:
    with tarfile.open(fileobj=io.BytesIO(images.render_layout(image))) as tar:
        file = tar.extractfile("index.json")
        assert file
        entries = json.load(file)["manifests"]
    lines = [f"{e['annotations']['io.containerd.image.name']} {e['mediaType']} {e['digest']} 585.0 B linux/amd64 -" for e in entries]
    return "\n".join(["REF TYPE DIGEST SIZE PLATFORMS LABELS", *lines])


def test_layout_is_whole_but_for_the_layer() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.render_layout(IMAGE))) as tar:
        names = set(tar.getnames())
    manifest, config = images.render_blobs(IMAGE)
    assert json.loads(config)["rootfs"]["diff_ids"] == [images.layer_id(IMAGE)]
    assert json.loads(config)["config"] == {"Cmd": ["/a"]}
    assert json.loads(manifest)["layers"][0]["digest"] == images.layer_id(IMAGE)
    assert f"blobs/{json.loads(manifest)['config']['digest'].replace(':', '/')}" in names
    assert f"blobs/{images.layer_id(IMAGE).replace(':', '/')}" not in names


def test_equal_images_are_equal_bytes() -> None:
    assert images.render_layout(IMAGE) == images.render_layout(replace(IMAGE))


def test_node_with_every_name_and_the_content_is_left_alone() -> None:
    assert images.is_present(IMAGE, listing(IMAGE))


def test_node_with_the_name_but_other_content_is_not() -> None:
    assert not images.is_present(replace(IMAGE, key="cd" * 32), listing(IMAGE))
    assert not images.is_present(IMAGE, listing(replace(IMAGE, references=IMAGE.references[:1])))
    assert not images.is_present(IMAGE, "REF TYPE DIGEST SIZE PLATFORMS LABELS\n")


def test_linked_root_filesystems_are_in_use(tmp_path: Path) -> None:
    paths = find_paths(tmp_path)
    snapshots = paths.node(WORKERS[0]) / "containerd" / images.SNAPSHOTS
    (snapshots / "1").mkdir(parents=True)
    (snapshots / "1" / "fs").symlink_to("/cache/rootfs/abab")
    (snapshots / "2" / "fs").mkdir(parents=True)
    assert images.in_use(NODES, paths) == [Path("/cache/rootfs/abab")]
