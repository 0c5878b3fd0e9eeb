"""The sidecar and nodes that get another size: a node keeps its size while a job may be on it, and gets the new one soon afterwards."""

from collections.abc import Mapping

import pytest

from programs.config_sync import report, run, slurm
from slurm.commands import SlurmError
from slurm.hostlists import expand
from tests.unit.programs.config_sync.held_site import BUSY, DRAINED, DRAINING, OFF, Site, site

FIXTURES = (site,)


@pytest.mark.parametrize(
    ("states", "held"),
    [
        pytest.param({"a-0": BUSY}, "a-[0-2]", id="nodes-that-are-idle-may-get-a-job"),
        pytest.param({"a-1": DRAINED, "a-2": OFF}, "a-0", id="drained-or-off"),
        pytest.param({"a-0": DRAINING, "a-1": DRAINED, "a-2": DRAINED}, "a-0", id="draining"),
        pytest.param({"a-0": "IDLE+CLOUD+DRAIN+WEIRD", "a-1": DRAINED, "a-2": DRAINED}, "a-0", id="unknown-is-busy"),
        pytest.param({"a-0": DRAINED, "a-1": DRAINED, "a-2": DRAINED}, "", id="all-free"),
    ],
)
def test_node_that_may_have_a_job_keeps_its_size(site: Site, states: Mapping[str, str], held: str) -> None:
    site.states |= states
    site.attempt()
    assert site.desk.report.held == held
    assert site.cpus() == {name: "1" if name in expand(held) else "2" for name in site.states}
    site.look()
    assert (site.desk.report.state, site.desk.report.held) == (report.LIVE, held)
    assert ("keep" in site.desk.report.message) == bool(held)


def test_node_gets_its_size_when_it_is_drained_and_the_others_keep_theirs(site: Site) -> None:
    site.attempt()
    assert site.look() is None
    site.states["a-1"] = DRAINING
    assert site.look() is None
    site.states["a-1"] = DRAINED
    assert site.look() == 0
    site.attempt()
    assert site.cpus() == {"a-0": "1", "a-1": "2", "a-2": "1"}
    assert site.desk.report.held == "a-[0,2]"
    site.states = dict.fromkeys(site.states, OFF)
    assert site.look() == 0
    site.attempt()
    assert site.look() is None
    assert (site.desk.report.held, set(site.cpus().values())) == ("", {"2"})
    assert "keep" not in site.desk.report.message


def test_sizes_are_tried_again_seconds_after_the_last_files_not_before(site: Site) -> None:
    """Each time, every slurmd reads the files."""
    site.attempt()
    site.states["a-0"] = DRAINED
    assert site.look(1) is None
    assert site.look(1) is None
    assert site.look(5) == 0


def test_silent_slurmctld_changes_no_size(site: Site) -> None:
    site.attempt()
    site.look()
    site.states["a-0"] = DRAINED
    site.outcome = SlurmError("no answer")
    assert site.look() is None
    site.outcome = None
    assert site.look() == 0


def test_sizes_that_are_taken_back_are_waited_for_no_longer(site: Site) -> None:
    site.attempt()
    site.offer(1)
    site.attempt()
    assert site.desk.report.held == ""
    site.states["a-0"] = DRAINED
    assert site.look() is None
    assert set(site.cpus().values()) == {"1"}


def test_other_files_are_taken_while_nodes_keep_their_size(site: Site) -> None:
    site.attempt()
    site.offer(3, "KillWait=31\n")
    site.attempt()
    assert "KillWait=31" in (site.claim / "conf/slurm.conf").read_text()
    assert (site.desk.report.held, set(site.cpus().values())) == ("a-[0-2]", {"1"})


def test_sidecar_that_is_started_anew_knows_which_nodes_keep_their_size(site: Site) -> None:
    site.attempt()
    site.start()
    site.attempt()
    assert (site.desk.report.held, set(site.cpus().values())) == ("a-[0-2]", {"1"})


def test_refused_files_leave_the_sizes_as_they_are(site: Site) -> None:
    site.states["a-0"] = DRAINED
    site.outcome = slurm.Refused("no MinJobAge")
    site.attempt()
    assert (site.desk.report.state, set(site.cpus().values())) == (report.REFUSED, {"1"})
    site.outcome = None
    site.attempt()
    assert site.cpus() == {"a-0": "2", "a-1": "1", "a-2": "1"}


@pytest.mark.parametrize(("other", "is_given_back"), [(BUSY, False), (DRAINED, True)], ids=["busy", "free"])
def test_files_are_given_back_only_where_no_busy_node_gets_its_old_size(site: Site, other: str, is_given_back: bool) -> None:
    """a-0 got its size while it was drained, and has jobs now; the slurmds of the others end over the files."""
    site.states |= {"a-0": DRAINED, "a-1": BUSY, "a-2": BUSY}
    site.attempt()
    site.states = {"a-0": other, "a-1": "DOWN+CLOUD+NOT_RESPONDING", "a-2": "DOWN+CLOUD+NOT_RESPONDING"}
    site.sync._told = slurm_told(site)  # pyright: ignore[reportPrivateUsage]
    site.clock += 30
    site.sync.look()
    assert (site.desk.report.state == report.REFUSED) is is_given_back
    assert site.cpus()["a-0"] == ("1" if is_given_back else "2")


def slurm_told(site: Site) -> run.Told:
    """That the slurmds were told long ago."""
    told = site.sync._told  # pyright: ignore[reportPrivateUsage]
    assert told is not None
    return run.Told(told.at - 100, told.before, answered=told.answered)
