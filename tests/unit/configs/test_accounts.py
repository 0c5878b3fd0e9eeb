"""The file that the program of Slurm's accounts reads: what it says, and that the program reads it as it was meant."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.accounts import build_settings
from configs.models.accounts import Limits, QosLimits
from configs.render.accounts import option
from programs.account_sync.fields import ASSOCIATION, QOS
from programs.account_sync.settings import from_json, to_json
from programs.account_sync.wanted import read_wanted
from tests.support.configs.stacks import cluster


def rendered(accounting: dict[str, Any]) -> str:
    return to_json(build_settings(cluster("dev", {"accounting": accounting})))


@pytest.mark.parametrize(("model", "fields"), [pytest.param(Limits, ASSOCIATION, id="association"), pytest.param(QosLimits, QOS, id="qos")])
def test_every_limit_is_one_that_the_program_knows(model: type[Limits] | type[QosLimits], fields: Any) -> None:
    assert {option(name) for name in model.model_fields} <= {field.option for field in fields}


def test_values_are_in_sacctmgrs_words() -> None:
    limits = {"grpTres": "cpu=4,mem=10G", "maxWall": "1-12:00:30", "grpWall": "UNLIMITED", "maxJobs": 0}
    accounts = [{"name": "a", "fairshare": 0, "limits": limits, "qos": ["normal"], "defaultQos": "normal"}]
    made = json.loads(rendered({"enforce": ["limits", "qos"], "accounts": accounts}))
    assert made["accounts"]["a"]["settings"] == {
        "Fairshare": "0",
        "QosLevel": "normal",
        "DefaultQOS": "normal",
        "GrpTRES": "cpu=4,mem=10G",
        "MaxWall": "2161",
        "MaxJobs": "0",
    }


def test_a_change_of_one_account_is_one_line() -> None:
    def lines(share: int) -> set[str]:
        accounts = [{"name": "a", "fairshare": share}, {"name": "b", "fairshare": 2}]
        return set(rendered({"accounts": accounts}).splitlines())

    assert len(lines(1) ^ lines(5)) == 2


@pytest.mark.parametrize(
    ("accounting", "is_kept"),
    [
        pytest.param({}, False, id="nothing-said"),
        pytest.param({"storage": {"size": "1Gi"}}, False, id="database-only"),
        pytest.param({"accounts": []}, True, id="no-accounts-any-more"),
        pytest.param({"enforce": ["associations"]}, True, id="enforcement-only"),
        pytest.param({"defaultAccount": "all"}, True, id="default-account-only"),
    ],
)
def test_accounts_are_kept_once_the_file_says_anything_of_them(accounting: dict[str, Any], is_kept: bool) -> None:
    assert cluster("dev", {"accounting": accounting}).accounting.is_kept == is_kept


@given(
    st.sets(st.sampled_from(["a", "b", "c"]), min_size=1), st.lists(st.sampled_from(["associations", "limits", "qos", "safe"]), unique=True)
)
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_program_reads_what_is_rendered(names: set[str], enforce: list[str]) -> None:
    accounts = [{"name": name, "users": ["alice"], "fairshare": 3} for name in sorted(names)]
    made = rendered({"enforce": enforce, "accounts": accounts, "qos": [{"name": "q", "description": "d"}], "defaultAccount": "rest"})
    wanted, notes = read_wanted(from_json(made), lambda _: None, list)
    assert notes == []
    assert wanted.accounts.keys() == {*names, "rest"}
    assert {member for member in wanted.members if member[1] == "alice"} == {(name, "alice") for name in names}
    assert (("root", "slurm") in wanted.members) == bool(enforce)
    assert wanted.qos["q"].description == "slipway: d"
