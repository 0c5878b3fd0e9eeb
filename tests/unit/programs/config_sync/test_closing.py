"""Partitions and nodes that changed files take away: the sidecar closes them before slurmctld may take the files, and opens them again."""

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from programs.config_sync import slurm
from programs.config_sync.closing import Closing
from programs.config_sync.judgement import Waiting
from slurm.commands import SlurmError
from slurm.states import node_state

OFF = "IDLE+CLOUD+POWERED_DOWN"


class Controller:
    """A slurmctld with the node `b` and the partition `old`, which the new files do not declare."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.version, self.said = folder, list[str]()
        self.states, self.partitions = {"a": "IDLE+CLOUD", "b": OFF}, {"all": "UP", "old": "UP"}
        self.refuses_to_open = False
        self.wakes = False
        """Power saving wakes the node in the moment before it is drained."""
        (folder / "slurm.conf").write_text("ClusterName=t\nNodeName=a\nPartitionName=all\n")
        monkeypatch.setattr(slurm, "expand", frozenset)
        monkeypatch.setattr(slurm, "read", self._read)
        for name in ("close_partition", "open_partition", "drain", "undrain"):
            monkeypatch.setattr(slurm, name, getattr(self, f"_{name}"))
        self.closing = Closing(self.said.append)

    def _read(self) -> slurm.Reading:
        nodes = {name: node_state(state.split("+")) for name, state in self.states.items()}
        return slurm.Reading(nodes, dict(self.partitions), (), time.monotonic())

    def _close_partition(self, name: str) -> None:
        self.partitions[name] = "DRAIN"

    def _open_partition(self, name: str) -> None:
        self._may_open()
        self.partitions[name] = "UP"

    def _drain(self, nodes: Iterable[str], reason: str) -> None:
        for name in nodes:
            self.states[name] = "ALLOCATED+CLOUD+DRAIN" if self.wakes else f"{OFF}+DRAIN"

    def _undrain(self, nodes: Iterable[str]) -> None:
        self._may_open()
        for name in nodes:
            self.states[name] = self.states[name].removesuffix("+DRAIN")

    def _may_open(self) -> None:
        if self.refuses_to_open:
            raise SlurmError("no answer")


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(tmp_path, monkeypatch)


def test_what_goes_is_closed_and_what_stays_is_open(controller: Controller) -> None:
    reading = controller.closing.close(controller.version)
    assert controller.partitions == {"all": "UP", "old": "DRAIN"}
    assert controller.states == {"a": "IDLE+CLOUD", "b": f"{OFF}+DRAIN"}
    assert "DRAIN" in reading.nodes["b"].flags


def test_what_was_closed_is_opened_once_slurmctld_refuses_the_files(controller: Controller) -> None:
    controller.closing.close(controller.version)
    assert controller.closing.reopen() == ""
    assert (controller.partitions["old"], controller.states["b"]) == ("UP", OFF)


def test_node_that_wakes_as_it_is_drained_is_put_back_and_the_files_wait(controller: Controller) -> None:
    """The partition takes no new job while the files wait: else they might wait for ever."""
    controller.wakes = True
    with pytest.raises(Waiting, match="node b"):
        controller.closing.close(controller.version)
    assert (controller.partitions["old"], controller.states["b"]) == ("DRAIN", "ALLOCATED+CLOUD")


def test_partition_that_cannot_be_opened_is_named_until_it_can(controller: Controller) -> None:
    controller.closing.close(controller.version)
    controller.refuses_to_open = True
    assert controller.closing.reopen() == "; partitions still closed: old"
    assert controller.said == ["the drain of b is not lifted yet: no answer"]
    controller.refuses_to_open = False
    assert controller.closing.reopen() == ""
    assert (controller.partitions["old"], controller.states["b"]) == ("UP", OFF)


def test_files_that_slurmctld_took_leave_nothing_to_open(controller: Controller) -> None:
    controller.closing.close(controller.version)
    controller.closing.note_taken()
    controller.refuses_to_open = True
    assert controller.closing.reopen() == ""
    assert controller.said == []
