"""The container that tells webhooks and mail addresses, and what a change of them does."""

from typing import Any

from components.cluster import program_folders
from components.control_plane import build_slurmctld
from components.notify import build_notify_settings
from configs.load import load_cluster
from configs.models.cluster import Cluster
from programs.notify.settings import from_json
from tests.support.components.examples import PODS
from tests.support.configs.stacks import ROOT, edited
from tests.unit.components.structure import structural_faults

RECEIVER = {"name": "chat", "urlSecret": "chat-url", "accounts": ["ml"], "events": ["jobFail", "nodeDrain"]}


def stack(*receivers: dict[str, Any]) -> Cluster:
    accounting = {"accounts": [{"name": "ml"}]}
    return load_cluster(edited("dev", {"notifications": {"receivers": [*receivers]}, "accounting": accounting}), ROOT, "x")


def pod(*receivers: dict[str, Any]) -> dict[str, Any]:
    made = build_slurmctld(stack(*receivers), PODS)
    assert structural_faults(made) == []
    return made["spec"]["template"]["spec"]


def mounts(container: dict[str, Any]) -> set[str]:
    return {each["name"] for each in container["volumeMounts"]}


def test_container_alone_has_the_addresses() -> None:
    made = pod(RECEIVER)
    [notify] = [each for each in made["containers"] if each["name"] == "notify"]
    assert [each["name"] for each in made["containers"] if "notify-url-chat" in mounts(each)] == ["notify"]
    assert not mounts(notify) & {"munge-key", "jwt"}
    assert "users" in mounts(notify), "squeue names users by it"
    assert notify["securityContext"]["runAsUser"] == 64030
    assert "memory" in notify["resources"]["limits"]


def test_secret_that_is_missing_keeps_slurmctld_from_nothing() -> None:
    [volume] = [each for each in pod(RECEIVER)["volumes"] if each["name"] == "notify-url-chat"]
    assert volume["secret"] == {"secretName": "chat-url", "defaultMode": 0o440, "optional": True}


def test_change_of_who_is_told_of_what_restarts_nothing() -> None:
    assert pod(RECEIVER) == pod({**RECEIVER, "events": ["jobEnd"], "users": ["alice"], "kind": "webhook"})


def test_nobody_to_be_told_is_no_container() -> None:
    assert "notify" not in {each["name"] for each in pod()["containers"]}
    assert "notify" not in {folder.name for folder in program_folders(stack())}
    assert {"notify", "mail"} <= {folder.name for folder in program_folders(stack(RECEIVER))}


def test_program_reads_who_is_told() -> None:
    [found] = from_json(build_notify_settings("dev", "slurm", stack(RECEIVER).notifications.receivers)["data"]["receivers.json"])
    assert (found.name, found.kind, found.accounts, found.events) == ("chat", "slack", {"ml"}, {"jobFail", "nodeDrain"})
    assert found.wants_jobs
    assert found.wants_nodes
