"""Nodes that keep their size, and what else may happen meanwhile: other versions, refusals, silence, a new sidecar, slurmds that end.

test_held.py has the plain course of it, and the site.
"""

from pathlib import Path

import pytest

from programs.config_sync import copies, report, slurm, slurmds
from programs.config_sync.slurmds import Slurmd
from slurm.commands import SlurmError
from slurm.states import node_state
from tests.unit.programs.config_sync.held_site import BUSY, DRAINED, IDLE, OFF, Site

CONF = "ClusterName=t\nNodeName=a-[0-2] CPUs={} {}\nPartitionName=b Nodes=ALL\n"
SILENT = "DOWN+CLOUD+NOT_RESPONDING"
ALL = "a-[0-2]"
REFUSED_S = 60


class Killed(BaseException):
    """Ends whatever runs, as SIGKILL does."""


@pytest.fixture
def site(claim: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(claim, monkeypatch)


@pytest.fixture
def held(site: Site) -> Site:
    """All nodes keep their size, and all slurmds have the files."""
    site.attempt()
    site.look()
    assert (site.desk.report.state, site.desk.report.held) == (report.LIVE, ALL)
    return site


@pytest.mark.parametrize(
    ("state", "is_free"),
    [
        pytest.param(DRAINED, True, id="drained"),
        pytest.param(OFF, True, id="off"),
        pytest.param("DOWN+CLOUD+DRAIN", True, id="down-and-drained"),
        pytest.param(IDLE, False, id="idle"),
        pytest.param(BUSY, False, id="busy"),
        pytest.param("MIXED+CLOUD+DRAIN", False, id="draining"),
        pytest.param("IDLE+CLOUD+COMPLETING+DRAIN", False, id="completing"),
        pytest.param("IDLE+CLOUD+DRAIN+UNDRAIN", False, id="drain-is-being-lifted"),
        pytest.param(SILENT, False, id="silent"),
        pytest.param("MIXED+CLOUD+POWERED_DOWN", False, id="off-and-chosen-for-a-job"),
        pytest.param("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", False, id="waking"),
        pytest.param("UNKNOWN+CLOUD+DRAIN", False, id="unknown"),
    ],
)
def test_node_is_tried_again_once_it_is_drained_or_off(held: Site, state: str, is_free: bool) -> None:
    held.states["a-1"] = state
    assert held.look() == (0 if is_free else None)
    held.attempt()
    assert held.cpus()["a-1"] == ("2" if is_free else "1")
    assert held.desk.report.held == ("a-[0,2]" if is_free else ALL)


def test_node_that_wakes_between_look_and_attempt_keeps_its_size(held: Site) -> None:
    held.states["a-1"] = OFF
    assert held.look() == 0
    held.states["a-1"] = "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP"
    held.attempt()
    assert (held.cpus()["a-1"], held.desk.report.held) == ("1", ALL)


def test_files_are_not_read_again_while_no_node_is_free(held: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("slurmctld was told")

    monkeypatch.setattr(slurm, "reconfigure", refuse)
    held.states |= {"a-0": BUSY, "a-1": "MIXED+CLOUD+DRAIN"}
    assert [held.look(seconds) for seconds in (1, 10, 100, 1000)] == [None] * 4


def test_message_names_few_of_many_nodes(site: Site) -> None:
    site.states = {f"a-{ordinal}": IDLE for ordinal in range(500)}
    (site.claim / "conf.start/slurm.conf").write_text(CONF.replace("0-2", "0-499").format(1, ""))
    (site.claim / "new/slurm.conf").write_text(CONF.replace("0-2", "0-499").format(2, ""))
    site.attempt()
    assert site.desk.report.held == "a-[0-499]"
    assert "500 nodes keep their size" in site.desk.report.message
    assert len(site.desk.report.message) < 300


def test_copy_has_the_kept_lines_of_both_files_and_the_rest_as_offered(site: Site) -> None:
    (site.claim / "conf.start/gres.conf").write_text("NodeName=a-[0-2] Name=gpu File=/dev/nvidia0\n")
    (site.claim / "new/cgroup.conf").write_text("x\n")
    (site.claim / "conf.start/slurm.conf").write_text("GresTypes=gpu\n" + CONF.format(1, "Gres=gpu:1"))
    site.states |= {"a-1": DRAINED, "a-2": DRAINED}
    site.attempt()
    copy = site.claim / "conf"
    assert (copy / "gres.conf").read_text() == "NodeName=a-0 Name=gpu File=/dev/nvidia0\n"
    assert (copy / "cgroup.conf").read_text() == "x\n"
    assert (copy / "slurm.conf").read_text().startswith("GresTypes=gpu\n")
    assert not (site.claim / "new/gres.conf").exists()
    site.states["a-0"] = DRAINED
    site.look()
    site.attempt()
    assert sorted(each.name for each in copy.iterdir()) == ["cgroup.conf", "slurm.conf"]
    assert (copy / "slurm.conf").read_text() == (site.claim / "new/slurm.conf").read_text()


def test_every_slurmd_can_be_given_the_kept_files(held: Site) -> None:
    """SlurmUser writes them; slurmctld reads them whoever it runs as."""
    assert (held.claim / "conf/slurm.conf").stat().st_mode & 0o444 == 0o444


def test_node_that_slurmctld_has_no_more_is_waited_for_no_longer(held: Site) -> None:
    del held.states["a-2"]
    assert held.look() == 0
    held.attempt()
    assert (held.cpus()["a-2"], held.desk.report.held) == ("2", "a-[0-1]")
    assert held.look() is None


def test_another_size_still_is_the_one_that_counts(held: Site) -> None:
    held.offer(3)
    held.attempt()
    held.states["a-0"] = DRAINED
    assert held.look() == 0
    held.attempt()
    assert held.cpus() == {"a-0": "3", "a-1": "1", "a-2": "1"}


def test_node_that_has_its_size_keeps_it_when_the_version_is_withdrawn(held: Site) -> None:
    held.states["a-0"] = DRAINED
    held.look()
    held.attempt()
    held.states["a-0"] = BUSY
    held.offer(1)
    held.attempt()
    assert held.cpus() == {"a-0": "2", "a-1": "1", "a-2": "1"}
    assert held.desk.report.held == "a-0"


def test_sidecar_that_is_started_anew_gives_sizes_later(held: Site) -> None:
    held.start()
    held.attempt()
    assert held.look() is None
    held.states["a-0"] = DRAINED
    assert held.look() == 0
    held.attempt()
    assert held.cpus()["a-0"] == "2"


def test_sidecar_that_is_killed_amid_a_size_starts_with_the_files_before(held: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill() -> None:
        raise Killed

    held.states["a-0"] = DRAINED
    with monkeypatch.context() as patch:
        patch.setattr(slurm, "reconfigure", kill)
        with pytest.raises(Killed):
            held.attempt()
    held.start()
    held.states["a-0"] = BUSY
    held.attempt()
    assert (set(held.cpus().values()), held.desk.report.held) == ({"1"}, ALL)


def test_sizes_that_cannot_be_read_are_waited_for(held: Site) -> None:
    (held.claim / "new/gres.conf").write_bytes(b"\xff")
    held.attempt()
    assert held.desk.report.state == report.WAITING
    assert "sizes of nodes that can be read" in held.desk.report.message
    assert set(held.cpus().values()) == {"1"}


@pytest.mark.parametrize("at", ["read", "reconfigure"])
def test_nodes_are_reported_through_a_silence_of_slurmctld(held: Site, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """These files have been taken: a silence amid a further size is news of neither them nor the nodes, whose drains would be lifted."""

    def fail() -> slurm.Reading:
        raise SlurmError("Unable to contact slurmctld")

    held.states["a-0"] = DRAINED
    assert held.look() == 0
    with monkeypatch.context() as patch:
        patch.setattr(slurm, at, fail)
        held.attempt()
    assert held.desk.report.held == ALL
    held.attempt()
    assert held.desk.report.held == "a-[1-2]"


def test_refused_files_are_not_tried_at_each_look_for_free_nodes(held: Site) -> None:
    """slurmctld tests files in a process of its own: once a minute, not every few seconds for as long as a node is drained."""
    held.offer(3, "Nonsense=1\n")
    held.outcome = slurm.Refused("no Nonsense")
    assert held.sync.attempt(held.claim / "new") == REFUSED_S
    held.outcome = None
    held.states["a-0"] = DRAINED
    assert [held.look(2) for _ in range(5)] == [None] * 5


def test_files_refused_by_slurmctld_change_no_node_and_mended_ones_count(held: Site) -> None:
    held.offer(3, "Nonsense=1\n")
    held.outcome = slurm.Refused("no Nonsense")
    held.attempt()
    assert (held.desk.report.state, set(held.cpus().values())) == (report.REFUSED, {"1"})
    held.outcome = None
    held.offer(3)
    held.states["a-0"] = DRAINED
    held.attempt()
    assert (held.cpus(), held.desk.report.held) == ({"a-0": "3", "a-1": "1", "a-2": "1"}, "a-[1-2]")


def lose(site: Site, monkeypatch: pytest.MonkeyPatch, *nodes: str) -> None:
    """The slurmds of these nodes end over the files, and are late."""
    monkeypatch.setattr(slurmds, "AGAIN_S", -1.0)
    monkeypatch.setattr(slurm, "read_slurmds", lambda: slurmds_of(site))
    site.states |= dict.fromkeys(nodes, SILENT)


def slurmds_of(site: Site) -> dict[str, Slurmd]:
    """Those that are not silent have the files."""
    return {name: Slurmd(node_state(state.split("+")), None if state == SILENT else 10**6) for name, state in site.states.items()}


def test_files_are_given_back_where_busy_nodes_have_their_size_either_way(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """a-0 got its size by the copy before, a-1 and a-2 by neither."""
    site.states |= {"a-0": DRAINED, "a-1": BUSY, "a-2": BUSY}
    site.attempt()
    site.states["a-0"] = BUSY
    site.offer(2, "KillWait=31\n")
    site.attempt()
    lose(site, monkeypatch, "a-0", "a-1")
    site.look(30)
    assert site.desk.report.state == report.REFUSED
    assert "KillWait" not in (site.claim / "conf/slurm.conf").read_text()
    assert site.cpus() == {"a-0": "2", "a-1": "1", "a-2": "1"}


def test_files_that_are_offered_again_are_not_given_back_over_a_busy_node(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One version is given back. With the next, a-0 gets its size while it is drained, and then a job. Now the first is offered again, to a
    sidecar that was started anew, and so knows of no second chance for these files."""
    site.offer(1, "KillWait=31\n")
    site.attempt()
    with monkeypatch.context() as patch:
        lose(site, patch, "a-0", "a-1")
        site.look(30)
    assert (site.desk.report.state, copies.BAD.exists()) == (report.REFUSED, True)
    site.states = {"a-0": DRAINED, "a-1": BUSY, "a-2": BUSY}
    site.offer(3)
    site.attempt()
    assert site.cpus()["a-0"] == "3"
    site.states["a-0"] = BUSY
    site.offer(1, "KillWait=31\n")
    site.start()
    site.attempt()
    assert site.cpus()["a-0"] == "3"
