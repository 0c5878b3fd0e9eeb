"""Mistakes of accounts, QOS and limits: one in a good stack file gives one fault, at its place, with what would do."""

# ruff: noqa: E501 - a table reads best with a row on a line

from typing import Any

import pytest

from components.accounts import build_settings
from configs.rules.accounts import check_accounts
from configs.rules.names import names_in
from tests.support.configs.stacks import GONE, cluster, edited
from tests.unit.configs.found_faults import faults

AT = "cluster.accounting"


def account(**more: Any) -> dict[str, Any]:
    """A further account of the cloud example."""
    return {"accounting.accounts[+]": {"name": "more", **more}}


def limits(**more: Any) -> dict[str, Any]:
    return account(limits=more)


def qos(**more: Any) -> dict[str, Any]:
    return {"accounting.qos[+]": {"name": "more", **more}}


CASES = [
    pytest.param(account(name="vision"), f"{AT}.accounts[2].name", f'"vision" is the name of {AT}.accounts[1] already', id="account-twice"),
    pytest.param(account(name="root"), f"{AT}.accounts[2].name", '"root" is the account that all others are below', id="account-root"),
    pytest.param(account(name="Vision"), f"{AT}.accounts[2].name", "lower-case letters", id="account-in-capitals"),
    pytest.param(account(name="a,b"), f"{AT}.accounts[2].name", '"a,b" is not a name', id="account-with-a-comma"),
    pytest.param(account(name="a" * 41), f"{AT}.accounts[2].name", "has 41 characters; 40 are allowed", id="account-name-too-long"),
    pytest.param(account(description="a|b"), f"{AT}.accounts[2].description", "holds |, which sacctmgr does not keep", id="description-with-a-bar"),
    pytest.param(account(parent="reserch"), f"{AT}.accounts[2].parent", 'no account is called "reserch". Did you mean "research"?', id="unknown-parent"),
    pytest.param(account(parent="more"), f"{AT}.accounts[2].parent", '"more" is below "more" itself', id="own-parent"),
    pytest.param({"accounting.accounts[0].parent": "vision"}, f"{AT}.accounts[0].parent", '"vision" is below "research" itself', id="cycle"),
    pytest.param(account(users=["adda"]), f"{AT}.accounts[2].users[0]", 'no user of login.users is called "adda". Did you mean "ada"?', id="unknown-user"),
    pytest.param(account(users=["ada", "ada"]), f"{AT}.accounts[2].users[1]", "is listed twice", id="user-twice"),
    pytest.param(account(groups=["reserch"]), f"{AT}.accounts[2].groups[0]", 'no group of login.groups is called "reserch". Did you mean', id="unknown-group"),
    pytest.param(account(perUser={"ada": {"fairshare": 2}}), f"{AT}.accounts[2].perUser.ada", '"ada" is not a user of this account', id="settings-of-a-stranger"),
    pytest.param(account(defaultFor=["ada"]), f"{AT}.accounts[2].defaultFor[0]", '"ada" is not a user of this account', id="default-of-a-stranger"),
    pytest.param({"accounting.accounts[0].defaultFor": ["ada"], "accounting.accounts[1].defaultFor": ["ada"]}, f"{AT}.accounts[1].defaultFor[0]", f"is already listed in {AT}.accounts[0].defaultFor", id="two-defaults"),
    pytest.param(account(fairshare=-1), f"{AT}.accounts[2].fairshare", '-1 is neither a whole number of shares nor "parent"', id="fairshare-below-zero"),
    pytest.param(account(fairshare="half"), f"{AT}.accounts[2].fairshare", '"half" is neither', id="fairshare-in-words"),
    pytest.param(account(qos=["urgnt"]), f"{AT}.accounts[2].qos[0]", 'no QOS of accounting.qos is called "urgnt". Did you mean "urgent"?', id="unknown-qos"),
    pytest.param(account(defaultQos="urgnt"), f"{AT}.accounts[2].defaultQos", 'called "urgnt". Did you mean "urgent"?', id="unknown-default-qos"),
    pytest.param(account(qos=["normal"], defaultQos="urgent"), f"{AT}.accounts[2].defaultQos", "not among the QOS of the account (normal)", id="default-qos-not-allowed"),
    pytest.param(account(users=["ada"], perUser={"ada": {"qos": ["urgnt"]}}), f"{AT}.accounts[2].perUser.ada.qos[0]", 'Did you mean "urgent"?', id="unknown-qos-of-a-user"),
    pytest.param(limits(grpTres="gpus=4"), f"{AT}.accounts[2].limits.grpTres", '"gpus=4" is not an amount of cpu, mem, node, billing, gres/gpu', id="unknown-tres"),
    pytest.param(limits(grpTres="cpu=4 mem=2"), f"{AT}.accounts[2].limits.grpTres", "is not an amount of cpu", id="tres-apart-by-spaces"),
    pytest.param(limits(grpTres="cpu=4G"), f"{AT}.accounts[2].limits.grpTres", "is not an amount of cpu", id="cpus-in-gigabytes"),
    pytest.param(limits(grpTres=""), f"{AT}.accounts[2].limits.grpTres", "is not an amount of cpu", id="no-tres"),
    pytest.param(limits(grpTres=4), f"{AT}.accounts[2].limits.grpTres", "text is wanted", id="number-for-tres"),
    pytest.param(limits(grpTres="cpu=4,cpu=5"), f"{AT}.accounts[2].limits.grpTres", "says cpu twice", id="tres-twice"),
    pytest.param(limits(grpTres="gres/gpu:a100=4"), f"{AT}.accounts[2].limits.grpTres", 'no node set has GPUs of model "a100"', id="unknown-gpu-model"),
    pytest.param(limits(maxWall="2 days"), f"{AT}.accounts[2].limits.maxWall", "not a time that Slurm knows", id="bad-time"),
    pytest.param(limits(maxWall=60), f"{AT}.accounts[2].limits.maxWall", "Write the time in quotes", id="unquoted-time"),
    pytest.param(limits(maxJobs=-1), f"{AT}.accounts[2].limits.maxJobs", "-1 is less than 0", id="limit-below-zero"),
    pytest.param(limits(maxJob=1), f"{AT}.accounts[2].limits.maxJob", 'Did you mean "maxJobs"?', id="unknown-limit"),
    pytest.param(limits(maxTresPerUser="cpu=1"), f"{AT}.accounts[2].limits.maxTresPerUser", "no such key", id="limit-of-qos-only"),
    pytest.param(qos(name="urgent"), f"{AT}.qos[1].name", "already. Each QOS needs its own", id="qos-twice"),
    pytest.param(qos(name="Urgent"), f"{AT}.qos[1].name", "lower-case letters", id="qos-in-capitals"),
    pytest.param({**qos(preempt=["nrmal"]), "slurm.settings.PreemptType": "preempt/qos", "slurm.settings.PreemptMode": "REQUEUE"}, f"{AT}.qos[1].preempt[0]", 'Did you mean "normal"?', id="unknown-preempted-qos"),
    pytest.param(qos(flags=["NoDecay", "NoDecay"]), f"{AT}.qos[1].flags[1]", "is listed twice", id="flag-twice"),
    pytest.param(qos(flags=["NoDeca"]), f"{AT}.qos[1].flags[0]", 'Did you mean "NoDecay"?', id="unknown-flag"),
    pytest.param(qos(usageFactor=-1), f"{AT}.qos[1].usageFactor", "-1 is not a number from 0 to 1000000", id="factor-below-zero"),
    pytest.param(qos(preemptMode="kill"), f"{AT}.qos[1].preemptMode", "is none of cancel, requeue, suspend, off", id="unknown-preempt-mode"),
    pytest.param({"accounting.enforce": ["limits", "qos", "limits"]}, f"{AT}.enforce[2]", "is listed twice", id="enforced-twice"),
    pytest.param({"accounting.enforce": ["limit", "safe", "qos"]}, f"{AT}.enforce[0]", 'Did you mean "limits"?', id="unknown-enforcement"),
    pytest.param({"accounting.defaultAccount": "root"}, f"{AT}.defaultAccount", "is for administrators", id="default-account-root"),
    pytest.param({"partitions[0].allowAccounts": ["visoin"]}, "cluster.partitions[0].allowAccounts[0]", 'Did you mean "vision"?', id="unknown-account-of-a-partition"),
    pytest.param({"partitions[0].allowQos": ["urgnt"]}, "cluster.partitions[0].allowQos[0]", 'Did you mean "urgent"?', id="unknown-allowed-qos"),
    pytest.param({"partitions[0].qos": "urgnt"}, "cluster.partitions[0].qos", 'Did you mean "urgent"?', id="unknown-qos-of-a-partition"),
    pytest.param({"partitions[0].qos": "urgent", "partitions[0].settings": {"QOS": "x"}}, "cluster.partitions[0].settings.QOS", "repeats qos", id="qos-of-a-partition-twice"),
    pytest.param({"partitions[0].allowAccounts": ["vision"], "partitions[0].settings": {"allowaccounts": "x"}}, "cluster.partitions[0].settings.allowaccounts", "repeats allowAccounts", id="accounts-of-a-partition-twice"),
    pytest.param({"slurm.settings.AccountingStorageEnforce": "limits"}, "cluster.slurm.settings.AccountingStorageEnforce", "Use accounting.enforce", id="enforcement-in-raw-settings"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "part"), CASES)
def test_mistake_is_one_fault(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("h100", {"login.ldap": GONE} | edits)  # with a directory, users may be there
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


BARE: dict[str, Any] = {"accounting.enforce": GONE, "accounting.accounts": [], "accounting.qos": [], "accounting.defaultAccount": GONE}

UNKEPT = [
    pytest.param({"accounting.accounts": [{"name": "a", "limits": {"maxJobs": 1}}]}, [f"{AT}.accounts[0].limits"], id="limits"),
    pytest.param({"accounting.accounts": [{"name": "a", "users": ["ada"], "perUser": {"ada": {"limits": {"maxJobs": 1}}}}]}, [f"{AT}.accounts[0].perUser.ada.limits"], id="limits-of-a-user"),
    pytest.param({"accounting.qos": [{"name": "a", "limits": {"maxWall": "60"}}]}, [f"{AT}.qos[0].limits"], id="limits-of-a-qos"),
    pytest.param({"accounting.accounts": [{"name": "a", "qos": ["normal"]}]}, [f"{AT}.accounts[0].qos"], id="allowed-qos"),
    pytest.param({"accounting.accounts": [{"name": "a"}], "partitions[0].allowAccounts": ["a"]}, ["cluster.partitions[0].allowAccounts"], id="accounts-of-a-partition"),
    pytest.param({"accounting.qos": [{"name": "a"}], "partitions[0].allowQos": ["a"]}, ["cluster.partitions[0].allowQos"], id="qos-of-a-partition"),
    pytest.param({"accounting.qos": [{"name": "a"}], "partitions[0].qos": "a"}, ["cluster.partitions[0].qos"], id="shared-limits-of-a-partition"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "paths"), UNKEPT)
def test_what_slurm_would_not_keep_is_a_mistake(edits: dict[str, Any], paths: list[str]) -> None:
    found = faults("h100", {**BARE, **edits})
    assert [path for path, _ in found] == paths, found
    assert all("Say enforce: [" in message for _, message in found)


def test_fair_share_needs_no_enforcement() -> None:
    assert cluster("h100", {**BARE, "accounting.accounts": [{"name": "a", "fairshare": 5}]})


def test_gpus_that_no_node_has_are_a_mistake() -> None:
    limit = {"accounting": {"enforce": ["limits"], "accounts": [{"name": "a", "limits": {"grpTres": "gres/gpu=4"}}]}}
    without = {"nodePools[0].hardware.gpus": GONE, "nodeSets[1].gpus": GONE, "nodeSets[1].simulatedGpus": False, "healthChecks[3]": GONE}
    [(path, message)] = faults("dev", {**limit, **without})
    assert (path, message) == (
        "cluster.accounting.accounts[0].limits.grpTres",
        "no node set has GPUs, so Slurm does not count them. Leave them out.",
    )


def test_preemption_needs_its_plugin() -> None:
    [(path, message)] = faults("h100", qos(preempt=["normal"]))
    assert path == f"{AT}.qos[1].preempt"
    assert "does nothing with PreemptType=preempt/none. Say PreemptType: preempt/qos" in message
    assert cluster("h100", {**qos(preempt=["normal"]), "slurm.settings": {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}})


def test_a_qos_does_not_preempt_itself() -> None:
    preemption = {"slurm.settings.PreemptType": "preempt/qos", "slurm.settings.PreemptMode": "REQUEUE"}
    found = faults("h100", {**qos(preempt=["more"]), **preemption})
    assert found == [(f"{AT}.qos[1].preempt[0]", "is this QOS itself. Leave it out.")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("enforce", ["associations"], id="enforce"),
        pytest.param("accounts", [{"name": "a"}], id="accounts"),
        pytest.param("qos", [{"name": "a"}], id="qos"),
        pytest.param("defaultAccount", "a", id="default-account"),
    ],
)
def test_accounts_need_accounting(key: str, value: Any) -> None:
    assert [path for path, _ in faults("dev", {"accounting": {"enabled": False, key: value}})] == [f"{AT}.{key}"]


def test_users_and_groups_of_a_directory_are_not_looked_for() -> None:
    edits = account(users=["someone"], groups=["elsewhere"], perUser={"someone": {"fairshare": 2}}, defaultFor=["other"])
    known = cluster("h100")
    raw = edited("h100", edits)
    more = known.accounting.accounts[0].model_validate(raw["accounting"]["accounts"][2])
    with_directory = known.model_copy(
        update={"accounting": known.accounting.model_copy(update={"accounts": (*known.accounting.accounts, more)})}
    )
    assert len(check_accounts(with_directory, names_in(raw))) == 3
    assert check_accounts(with_directory, names_in(raw), has_directory=True) == []
    assert build_settings(with_directory).has_directory
