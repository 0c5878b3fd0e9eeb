"""ganesha.conf: golden, and what its numbers are made from. That nfs-ganesha reads it is tests/slurm/test_nfs_server.py's."""

from typing import Any

import pytest

from configs.models.cluster import Cluster
from configs.render.nfs_server import GRACE_S, LEASE_S, exports, render
from tests.support.configs.golden import assert_golden
from tests.support.configs.stacks import cluster

SERVER = {"size": "1Ti", "clusterIP": "10.96.20.49"}
DATA = {"name": "data", "mountPath": "/data", "nfsServer": True}


def served(**storage: Any) -> Cluster:
    given = {"nfsServer": SERVER, "sharedRoot": {"nfsServer": True}, "home": {"nfsServer": True}, **storage}
    return cluster("dev", {f"storage.{key}": value for key, value in given.items()})


def test_rendered_file_is_the_golden_one() -> None:
    everything = served(mounts=[DATA, {**DATA, "name": "sets", "mountPath": "/sets", "readOnly": True}])
    closed = served(nfsServer={**SERVER, "networks": ["10.0.0.0/16", "fd00::/64"]})
    assert_golden("nfs", {"ganesha.conf": render(everything), "ganesha-networks.conf": render(closed)})


def test_numbers_of_exports_are_of_their_names_and_never_change() -> None:
    """They are in every file handle that a client holds: other numbers would make all of them stale."""
    numbers = {each.name: each.id for each in exports(served(mounts=[DATA]))}
    assert numbers == {"shared-root": 2524, "home": 36602, "mount-data": 26663}
    assert {each.name: each.id for each in exports(served(home={"hostPath": "/srv/home"}, mounts=[DATA]))}.items() < numbers.items()


def test_root_is_root_on_the_shared_root_alone() -> None:
    assert [each.name for each in exports(served(mounts=[DATA])) if not each.squash] == ["shared-root"]


def test_locks_can_be_taken_back_for_longer_than_a_lease() -> None:
    assert GRACE_S > LEASE_S


@pytest.mark.parametrize("network", [pytest.param("10.0.0.0/16", id="v4"), pytest.param("fd00::/64", id="v6")])
def test_named_networks_leave_nothing_to_others(network: str) -> None:
    text = render(served(nfsServer={**SERVER, "networks": [network]}))
    for block in text.split("EXPORT {")[1:]:
        assert block.index("Access_Type = None;") < block.index(f"Clients = {network};") < block.index("Access_Type = RW;")
