"""`down` of what another checkout has left, on a machine of stand-ins: programs and folders are real, the network is not touched.

Also, who may enter the state folder.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from local import cgroups, cluster, processes
from local.commands import LocalError
from local.layout import Paths, find_paths
from local.steps import Step


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The state folders of clusters whose part of the machine was given back."""
    found: list[Path] = []

    def give_back(paths: Paths, _: Step) -> None:
        found.append(paths.state)

    monkeypatch.setattr(cluster, "_give_machine_back", give_back)
    monkeypatch.setattr(cgroups, "kill", list)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return found


@pytest.fixture
def ours(tmp_path: Path) -> Paths:
    return replace(find_paths(tmp_path / "ours", {"HOME": str(tmp_path)}), runtime=tmp_path / "run")


@pytest.fixture
def other(ours: Paths, tmp_path: Path) -> Iterator[Paths]:
    """Another checkout whose cluster runs."""
    made = replace(ours, state=tmp_path / "other/.slipway")
    made.etcd.mkdir(parents=True)
    ours.runtime.mkdir()
    ours.owner.write_text(str(made.state))
    processes.start(processes.Program("etcd", ("sleep", "60")), made.records, made.logs)
    yield made
    processes.stop(processes.running(made.records).values(), made.records, grace_s=0)


def test_cluster_of_another_checkout_is_left_alone(ours: Paths, other: Paths, given_back: list[Path]) -> None:
    with pytest.raises(LocalError, match="--any-checkout"):
        cluster.down(ours, Console(quiet=True))
    assert (list(processes.running(other.records)), given_back, other.etcd.exists()) == (["etcd"], [], True)


def test_cluster_of_any_checkout_is_ended_where_that_is_asked_for(ours: Paths, other: Paths, given_back: list[Path]) -> None:
    cluster.down(ours, Console(quiet=True), any_checkout=True)
    assert (processes.running(other.records), given_back, other.etcd.exists()) == ({}, [other.state], False)


def test_checkout_that_was_removed_is_not_made_again(ours: Paths, given_back: list[Path]) -> None:
    ours.runtime.mkdir()
    ours.owner.write_text("/nowhere/.slipway")
    cluster.down(ours, Console(quiet=True), any_checkout=True)
    assert given_back == [ours.state]
    assert not Path("/nowhere").exists()


def test_state_is_closed_to_other_users(ours: Paths, given_back: list[Path]) -> None:
    """Volumes in it are open to all. An older checkout made it open, too."""
    ours.state.mkdir(parents=True, mode=0o755)
    cluster.down(ours, Console(quiet=True))
    assert (given_back, ours.state.stat().st_mode & 0o777) == ([ours.state], 0o700)


def test_key_of_make_up_is_closed_to_other_users(tmp_path: Path) -> None:
    key = ".slipway/ssh/id_ed25519"
    subprocess.run(["make", "--silent", f"--file={Path(__file__).parents[3] / 'Makefile'}", key], cwd=tmp_path, check=True)
    assert (tmp_path / key).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".slipway").stat().st_mode & 0o777 == 0o700
