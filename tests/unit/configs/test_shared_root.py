"""Which versions of the root there are, and the settings that the plugin reads."""

from typing import Any

import pytest

from configs.models.shared_root import Root, RootTar, RootVersion
from configs.render.shared_root import current_of, render, render_sudoers, versions_of
from tests.support.configs.stacks import cluster

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


def test_version_from_a_tar_has_no_image_and_follows_what_it_carries_from() -> None:
    tar = RootTar(url="https://files.example/root.tar.zst", sha256="ab" * 32)
    three = RootVersion(name="3", tar=tar, carry_from="2")
    found = versions_of(Root(versions=(three, RootVersion(name="2", carry_from="1"), ONE)), "slurm:9")
    assert [*found] == ["1", "2", "3"]
    assert (found["3"].image, found["3"].tar, found["2"].image) == (None, tar, "slurm:9")
    assert current_of(Root(versions=(three, TWO)), "slurm:9") == "2"  # the last as they stand in the file


def test_settings_name_every_mount_and_mark_those_of_some_pods_optional() -> None:
    data = {"name": "data", "mountPath": "/data", "hostPath": "/srv/data"}
    lines = render(cluster("dev", {"storage.mounts": [data]}), "/settings", 64030).splitlines()
    always = {"shared=/shared", "mount=/home", "mount=/var/lib/extrausers", "mount=/usr/lib/slipway", "outside=64030"}
    assert {*always, "mount?=/data"} <= set(lines)


@pytest.mark.parametrize(
    ("edits", "sudoers"),
    [
        pytest.param({}, "alice ALL=(ALL:ALL) NOPASSWD: ALL\n", id="user"),
        pytest.param(
            {"login.users[0].admin": False, "login.groups[+]": {"name": "ops", "gid": 20002}, "login.adminGroups": ["ops"]},
            "%ops ALL=(ALL:ALL) NOPASSWD: ALL\n",
            id="group",
        ),
        pytest.param({"login.users[0].admin": False}, "", id="nobody"),
    ],
)
def test_admins_and_nobody_else_may_use_sudo(edits: dict[str, Any], sudoers: str) -> None:
    made = cluster("dev", edits)
    assert render_sudoers(made) == sudoers
    assert ("file?=/settings/sudoers:/etc/sudoers.d/slipway" in render(made, "/settings", 64030).splitlines()) == bool(sudoers)


def test_disk_for_the_tmp_of_jobs_is_not_shown_to_them_as_such() -> None:
    claim = {"name": "scratch", "mountPath": "/var/spool/slipway/tmp", "size": "1Ti"}
    lines = render(cluster("dev", {"nodeSets[0].volumeClaims": [claim]}), "/settings", 64030).splitlines()
    assert [line for line in lines if "/var/spool/slipway/tmp" in line] == ["tmp=/var/spool/slipway/tmp"]


@pytest.mark.parametrize("is_on", [True, False])
def test_ssh_settings_are_in_every_version_where_users_go_to_workers(is_on: bool) -> None:
    lines = render(cluster("dev", {"login.sshToNodes": is_on}), "/settings", 64030).splitlines()
    assert ("file?=/etc/ssh/ssh_config.d/slipway.conf" in lines) == is_on
