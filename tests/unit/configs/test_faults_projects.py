"""Folders that accounts share: mistakes that would leave a member outside, or the folder where jobs do not see it."""

from typing import Any

import pytest

from configs.models.cluster import Cluster
from configs.render import login, shared_root
from tests.support.configs.stacks import KEY, cluster, example
from tests.unit.configs.found_faults import faults

FOLDER = "cluster.accounting.accounts[0].folder"
PLACE = "cluster.storage.projects"
MOUNT = {"name": "all", "mountPath": "/all", "claim": "all-of-us"}


def account(**more: Any) -> dict[str, Any]:
    return {
        "accounting": {"accounts": [{"name": "lab", "folder": True, "groups": ["vision"], **more}]},
        "login.users": USERS,
        "login.groups": [{"name": "vision", "gid": 20001}],
        "login.adminGroups": [],
    }


USERS = [{"name": "ada", "uid": 20010, "groups": ["vision"], "sshKeys": [KEY]}, {"name": "bob", "uid": 20011, "sshKeys": [KEY]}]

CASES = [
    pytest.param(account(groups=[], users=["ada"]), FOLDER, "the account has no group. Name one in groups", id="no-group"),
    pytest.param(account(groups=["vision", "bob"]), FOLDER, "has the groups vision, bob. Name one", id="two-groups"),
    pytest.param(account(users=["ada", "bob"]), FOLDER, 'bob could not enter it, as the folder is of group "vision"', id="user-outside"),
    pytest.param(
        {**account(), "storage.projects": "/data2/projects"},
        PLACE,
        '"/data2/projects" is on no shared volume. Take /shared/projects',
        id="nowhere",
    ),
    pytest.param({**account(), "storage.projects": "/shared/jobs"}, PLACE, "where Slipway keeps files of its own", id="own-folder"),
    pytest.param(
        {**account(), "storage.mounts": [{**MOUNT, "readOnly": True}], "storage.projects": "/all/p"},
        PLACE,
        'mount "all" is read-only',
        id="read-only",
    ),
    pytest.param(
        {**account(), "storage.mounts": [MOUNT], "nodeSets[0].mounts": [], "storage.projects": "/all/p"},
        PLACE,
        'do not see mount "all"',
        id="unseen",
    ),
]


@pytest.mark.parametrize(("edits", "path", "part"), CASES)
def test_folder_that_members_could_not_share_is_one_fault(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("dev", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


def test_mount_of_the_own_server_is_refused() -> None:
    server = {"size": "1Ti", "clusterIP": "10.96.20.49"}
    mount = {"name": "all", "mountPath": "/all", "nfsServer": True}
    edits = {**account(), "storage.nfsServer": server, "storage.mounts": [mount], "storage.projects": "/all/p"}
    [(path, message)] = faults("dev", edits)
    assert path == PLACE
    assert "keeps root of its clients out. Take /shared/projects" in message


def made(**more: Any) -> Cluster:
    return cluster("dev", {**account(), **more})


def test_login_pods_get_each_folder_with_its_group() -> None:
    assert login.render(made())["projects"] == "/shared/projects/lab vision\n"
    assert "projects" not in login.render(cluster("h100"))


def test_jobs_in_the_versioned_root_see_the_folders() -> None:
    line = "mount?=/shared/projects\n"
    assert "root" in example("dev")["storage"]
    assert line in shared_root.render(made(), "/etc/slipway/root", 64030)
    assert line not in shared_root.render(cluster("dev", {"accounting.accounts": []}), "/etc/slipway/root", 64030)
    elsewhere = made(**{"storage.mounts": [MOUNT], "storage.projects": "/all/p", "storage.root.keepDays": 3})
    assert line not in shared_root.render(elsewhere, "/etc/slipway/root", 64030)
