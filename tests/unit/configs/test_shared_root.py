"""Which versions of the root there are, and the settings that the plugin reads."""

import pytest

from configs.models import Root, RootVersion
from configs.shared_root import current_of, render, versions_of
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
    assert versions_of(root, image) == versions
    assert current_of(root, image) == current


def test_settings_name_every_mount_and_leave_optional_what_only_some_pods_have() -> None:
    lines = render(
        cluster("dev", {"storage.mounts": [{"name": "data", "mountPath": "/data", "hostPath": "/srv/data"}]}), 64030
    ).splitlines()
    assert {"shared=/shared", "mount=/home", "mount=/var/lib/extrausers", "mount=/usr/lib/slipway", "mount?=/data", "outside=64030"} <= set(
        lines
    )


@pytest.mark.parametrize("is_on", [True, False])
def test_ssh_settings_are_in_every_version_where_users_go_to_workers(is_on: bool) -> None:
    lines = render(cluster("dev", {"login.sshToNodes": is_on}), 64030).splitlines()
    assert ("file?=/etc/ssh/ssh_config.d/slipway.conf" in lines) == is_on
