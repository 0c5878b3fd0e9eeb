"""How sacctmgr's values are read, compared and written: what it shows on the left, as 26.05.5 does."""

import pytest

from programs.account_sync.fields import ASSOCIATION, QOS, changes, plain


@pytest.mark.parametrize(
    ("option", "shown", "same"),
    [
        pytest.param("GrpTRES", "cpu=4,mem=10G", "mem=10240,cpu=4", id="memory-in-units-and-another-order"),
        pytest.param("GrpTRES", "mem=1500M", "mem=1500", id="memory-in-mib"),
        pytest.param("GrpTRESMins", "mem=1T", "mem=1048576", id="large-memory"),
        pytest.param("MaxWall", "1-12:01:00", "2161", id="days"),
        pytest.param("MaxWall", "01:30:00", "90", id="hours"),
        pytest.param("GrpWall", "00:09:30", "10", id="seconds-round-up"),
        pytest.param("QosLevel", "normal,high", "high,normal", id="order-of-names"),
        pytest.param("Fairshare", "1", "", id="share-of-one-is-the-default"),
    ],
)
def test_one_value_in_two_spellings_is_no_change(option: str, shown: str, same: str) -> None:
    assert changes(ASSOCIATION, plain(ASSOCIATION, {option: same}), plain(ASSOCIATION, {option: shown})) == ()


@pytest.mark.parametrize(
    ("option", "shown", "same"),
    [
        pytest.param("GraceTime", "00:02:00", "120", id="grace-in-seconds"),
        pytest.param("PreemptExemptTime", "00:10:00", "10", id="exempt-time-in-minutes"),
        pytest.param("UsageFactor", "2.500000", "2.5", id="decimals"),
        pytest.param("UsageFactor", "1.000000", "", id="factor-of-one-is-the-default"),
        pytest.param("PreemptMode", "cluster", "", id="mode-of-the-cluster-is-the-default"),
        pytest.param("Flags", "NoDecay,DenyOnLimit", "DenyOnLimit,NoDecay", id="order-of-flags"),
        pytest.param("Priority", "0", "", id="no-priority"),
    ],
)
def test_one_value_of_a_qos_in_two_spellings_is_no_change(option: str, shown: str, same: str) -> None:
    assert changes(QOS, plain(QOS, {option: same}), plain(QOS, {option: shown})) == ()


@pytest.mark.parametrize(
    ("option", "old", "new", "command"),
    [
        pytest.param("GrpTRES", "cpu=4,gres/gpu=2", "cpu=8", "cpu=8,gres/gpu=-1", id="tres-that-goes-is-named"),
        pytest.param("GrpTRES", "cpu=4", "", "cpu=-1", id="last-tres"),
        pytest.param("MaxJobs", "4", "", "-1", id="limit-that-goes"),
        pytest.param("MaxJobs", "", "0", "0", id="limit-of-nothing-is-a-limit"),
        pytest.param("QosLevel", "high", "", "", id="list-of-qos-that-goes"),
        pytest.param("DefaultQOS", "high", "", "-1", id="default-qos-that-goes"),
        pytest.param("Fairshare", "parent", "", "1", id="share-that-goes"),
    ],
)
def test_a_change_is_written_as_sacctmgr_wants_it(option: str, old: str, new: str, command: str) -> None:
    assert changes(ASSOCIATION, plain(ASSOCIATION, {option: new}), plain(ASSOCIATION, {option: old})) == ((option, command),)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"MaxJobs": "many"}, id="number"),
        pytest.param({"MaxWall": "soon"}, id="time"),
        pytest.param({"GrpTRES": "cpu=x"}, id="tres"),
    ],
)
def test_a_text_that_is_not_understood_is_told(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"many|soon|x"):
        plain(ASSOCIATION, settings)
