"""Which versions of the root there are, and the settings that the plugin reads."""

import pytest

from configs.models import Root, RootVersion
from configs.shared_root import current_of, render, versions_of
from configs.storage import RootTar
from tests.unit.configs.stacks import cluster

ONE, TWO = RootVersion(name="1", image="registry.example/root:1"), RootVersion(name="2")


@pytest.mark.parametrize(
    ("root", "image", "versions", "current"),
    [
        pytest.param(Root(), "localhost/slipway/slurm:0123", {"0123": "localhost/slipway/slurm:0123"}, "0123", id="after-the-tag"),
        pytest.param(
            Root(),
            "registry:5000/slurm@sha256:" + "ab" * 32,
            {"ab" * 6: "registry:5000/slurm@sha256:" + "ab" * 32},
            "ab" * 6,
            id="after-the-digest",
        ),
        pytest.param(Root(), "registry:5000/slurm", {"latest": "registry:5000/slurm"}, "latest", id="neither"),
        pytest.param(Root(versions=(ONE, TWO)), "slurm:9", {"1": "registry.example/root:1", "2": "slurm:9"}, "2", id="the-last"),
        pytest.param(
            Root(versions=(ONE, TWO), current="1"), "slurm:9", {"1": "registry.example/root:1", "2": "slurm:9"}, "1", id="back-to-the-first"
        ),
    ],
)
def test_versions_and_the_current_one(root: Root, image: str, versions: dict[str, str], current: str) -> None:
    assert {name: version.image for name, version in versions_of(root, image).items()} == versions
    assert current_of(root, image) == current


def test_version_from_a_tar_has_no_image_and_comes_after_what_it_carries_from() -> None:
    tar = RootTar(url="https://files.example/root.tar.zst", sha256="ab" * 32)
    three = RootVersion(name="3", tar=tar, carry_from="2")
    found = versions_of(Root(versions=(three, RootVersion(name="2", carry_from="1"), ONE)), "slurm:9")
    assert [*found] == ["1", "2", "3"]
    assert (found["3"].image, found["3"].tar, found["2"].image) == (None, tar, "slurm:9")
    assert current_of(Root(versions=(three, TWO)), "slurm:9") == "2"  # the last as they stand in the file


def test_settings_name_every_mount_and_leave_optional_what_only_some_pods_have() -> None:
    lines = render(
        cluster("dev", {"storage.mounts": [{"name": "data", "mountPath": "/data", "hostPath": "/srv/data"}]}), 64030
    ).splitlines()
    assert {"shared=/shared", "mount=/home", "mount=/var/lib/extrausers", "mount=/usr/lib/slipway", "mount?=/data", "outside=64030"} <= set(
        lines
    )
